"""One upstream call: opens it, reads it until it can be judged, and remembers what it saw. It decides nothing."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from hedgerow.clock import Clock
from hedgerow.dialects.base import AnswerReader, AssemblingReader, Dialect
from hedgerow.dialects.encoding import ContentDecoder
from hedgerow.dialects.headers import assembled_headers, header_value
from hedgerow.policy.trouble import TOKENS_FOR_PACE, Progress
from hedgerow.race.order import Order
from hedgerow.race.upstream import Call, UpstreamResponse
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.race import CommitOn

__all__ = ["CUT", "UNREADABLE", "Attempt", "Verdicts"]

CHARS_PER_TOKEN = 4.0
BAD_GATEWAY = 502
EVENT_STREAM = "text/event-stream"
LAST_BYTES_S = 0.1  # after an end mark, for the end of the body: with it the connection can be used again
# Of a stream without end mark (Gemini's) that is put together: some servers send a reason before their last tool has run.
QUIET_END_S = 2.0
MOST_UNSEEN_BYTES = 4_194_304  # of a backup's stream in an unknown coding, while others run: it is kept in memory
REST_S, MOST_REST_BYTES = 5.0, 1_048_576  # of an answer that has failed: what stands behind the error
CUT, UNREADABLE = "cut", "unreadable"


class Verdicts:
    """Where an attempt reports to, with its number. `content` says whether the attempt has won by it, being told whether the
    content could be looked into; `answered` is told whether the answer is valid, and whether it could be looked into; `aside` of
    one that is neither an error nor an answer; `begun` once of the first content of a stream that is put together; `progressed`
    of each chunk of one that is being raced, from the 9th token on."""

    __slots__ = ("answered", "aside", "begun", "content", "failed", "progressed")

    def __init__(
        self,
        *,
        content: Callable[[int, bool], bool],
        answered: Callable[[int, bool, bool], None],
        aside: Callable[[int], None],
        failed: Callable[[int, Failure], None],
        begun: Callable[[int], None],
        progressed: Callable[[int], None],
    ) -> None:
        self.content, self.answered, self.failed = content, answered, failed
        self.aside, self.begun, self.progressed = aside, begun, progressed


class Attempt:
    """What is known of one attempt. Times are on the race's clock, None = not yet. Belongs to one race.

    `parked`: it has won with its response open; from then on the delivery reads it and whoever ends the race closes it.
    `reads_rest`: it has failed, and what stands behind the error is still coming. `broken`: why no answer can be made of its
    stream, which the caller had not asked for: "cut" or "unreadable".
    """

    def __init__(self, number: int, target: int, reason: str, clock: Clock) -> None:
        self.number, self.target, self.reason = number, target, reason
        self.started_s = clock.now()
        self.connected_s: float | None = None
        self.reused: bool | None = None
        self.headers_s: float | None = None
        self.first_token_s: float | None = None
        self.last_chunk_s: float | None = None
        self.longest_pause_s = 0.0
        self.cancelled_s: float | None = None
        self.closed_s: float | None = None
        self.chunks: list[bytes] = []
        self.response: UpstreamResponse | None = None
        self.reader: AnswerReader | None = None
        self.error: Exception | None = None
        self.failure: Failure | None = None
        self.parked = self.runs_on = self.reads_rest = False
        self.broken: str | None = None
        self.rewritten: tuple[int, Sequence[tuple[bytes, bytes]]] | None = None
        self.chars_per_token = CHARS_PER_TOKEN
        self._asked_to_stream = False
        self._assembler: AssemblingReader | None = None
        self._fresh_reader: Callable[[], AnswerReader]
        self._epilogue: AnswerReader | None = None
        self._marks: deque[tuple[float, float]] = deque(maxlen=TOKENS_FOR_PACE)
        self._clock = clock
        self._decoder: ContentDecoder | None = None

    def connected(self, *, reused: bool) -> None:
        """ConnectionNotes: it no longer waits for the pool."""
        if self.connected_s is None:
            self.connected_s, self.reused = self._clock.now(), reused

    def abandoned(self) -> None:
        """ConnectionNotes: it runs on without anyone listening."""
        self.runs_on = True

    @property
    def progress(self) -> Progress:
        """A snapshot for the machine."""
        first_s, last_s = self.first_token_s, self.last_chunk_s
        ended = self.reader is not None and self.reader.facts.ended
        return Progress(self.number, self.connected_s, first_s, last_s, self.tokens, self._pace_s(), ended)

    @property
    def tokens(self) -> float:
        """Visible tokens so far, by the length of the text."""
        return self.reader.facts.visible_chars / self.chars_per_token if self.reader is not None else 0.0

    @property
    def streamed(self) -> bool:
        """Did its answer come as a stream that could be watched?"""
        asked_and_got = self._assembler is None or self._assembler.streamed is True
        return self.reader is not None and self._asked_to_stream and asked_and_got

    async def run(self, call: Call, order: Order, commit_on: CommitOn, verdicts: Verdicts) -> None:
        """Send it and read until it is judged: committed to, complete, or failed. Leaves the response open only when it
        reported content, for the winner's stream to go on with; cancelled, it closes what it opened."""
        try:
            self._asked_to_stream = order.streams
            self.response = await call.open(self.target, self, order.as_stream)
            self.headers_s = self._clock.now()
            if self.response.status >= 400:
                await self._read_error(order.dialect, verdicts)
            elif commit_on is CommitOn.HEADERS:
                self.parked = verdicts.content(self.number, True)
            elif not 200 <= self.response.status < 300:
                await self._read_aside(verdicts)
            else:
                self._assembler = order.assembling_reader(self.response.headers)
                self._fresh_reader = partial(order.reader, self.response.headers)
                self.reader = self._assembler or self._fresh_reader()
                self._decoder = ContentDecoder(header_value(self.response.headers, b"content-encoding"))
                self.parked = await self._read_answer(commit_on, verdicts)
        except Exception as error:
            self.error = error
            failure = call.failure_of(error)
            # Once it has its answer's head, the client of a streaming caller does not try again by itself.
            broke_off = self.response is not None and commit_on is CommitOn.CONTENT
            self.fail(replace(failure, in_answer=True) if broke_off else failure, verdicts)
        finally:
            if not self.parked:
                await self.close()

    @property
    def at_end_mark(self) -> bool:
        """Has the answer said that nothing follows?"""
        return self.reader is not None and self.reader.facts.end_mark

    async def next_chunk(self) -> bytes:
        """The next raw bytes of an open response, looked at while they pass; b"" at the end, which is where the answer ends,
        though its connection may stay open."""
        if self.reader is not None and self.reader.facts.ended:
            return await self._last_bytes(self.reader.facts.end_mark)
        assert self.response is not None
        chunk = await self.response.read()
        return self._look_at(chunk)

    async def _last_bytes(self, end_mark: bool) -> bytes:
        """What comes behind the end of an answer, within a moment."""
        assert self.response is not None
        try:
            async with asyncio.timeout(LAST_BYTES_S if end_mark else self._quiet_end_s):
                while chunk := await self.response.read():
                    if not end_mark:
                        return self._look_at(chunk)
                    if self._belongs_behind(chunk):
                        return chunk
        except Exception:  # a connection that stays open or breaks: the answer is whole all the same
            return b""
        return b"" if end_mark else self._look_at(b"")

    @property
    def _quiet_end_s(self) -> float | None:
        """How long a stream without end mark that has said its finish reasons may be silent; None = as long as the caller's own
        client allows. Some servers send a reason with every chunk, or one before their tools run: to leave the caller's own
        stream then would hand out a part as the whole."""
        return None if self._assembler is None else QUIET_END_S

    def _belongs_behind(self, chunk: bytes) -> bool:
        """May this follow an end mark? The trailer of a coding, without which a client takes a body for cut; and events that
        Anthropic's SDK and OpenAI's hand on until the body ends. Nothing behind [DONE], and no error: the answer is whole."""
        if self._decoder is None or self._decoder.compressed:
            return self._decoder is not None
        if self.reader is None or self.reader.facts.done:
            return False
        self._epilogue = self._epilogue or self._fresh_reader()
        self._epilogue.feed(chunk)
        return self._epilogue.facts.failure is None

    def _look_at(self, chunk: bytes) -> bytes:
        """A chunk, or b"" for the end, and what it says."""
        now_s = self._clock.now()
        if self.reader is None or self._decoder is None:
            self.last_chunk_s = now_s
            return chunk
        contents = self.reader.facts.chunks
        if chunk:
            content = self._decoder.decode(chunk)
            if len(content) > len(chunk) and self.response is not None:
                self.response.grew(len(content) - len(chunk))
            self.reader.feed(content)
        else:
            self.reader.finish()
        if self.reader.facts.content and (self.reader.facts.chunks > contents or self.first_token_s is None):
            if self.last_chunk_s is not None:
                self.longest_pause_s = max(self.longest_pause_s, now_s - self.last_chunk_s)
            self.last_chunk_s = now_s  # pings and comments are no sign of life
            self.first_token_s = now_s if self.first_token_s is None else self.first_token_s
            self._marks.append((now_s, self.tokens))
        return chunk

    @property
    def sees(self) -> bool:
        """Can the content be looked at? If not, its first bytes have to do, unless a better attempt may come."""
        overlooked = self.reader is not None and self.reader.facts.overlooked
        return self._decoder is not None and self._decoder.sees and not overlooked

    def fail(self, failure: Failure, verdicts: Verdicts) -> None:
        """Remember the failure and report it."""
        self.failure = failure
        verdicts.failed(self.number, failure)

    async def close(self) -> None:
        """Close the connection. Idempotent."""
        try:
            if self.response is not None:
                await self.response.close()
        finally:
            if self.closed_s is None:
                self.closed_s = self._clock.now()

    async def _read_aside(self, verdicts: Verdicts) -> None:
        """A redirect, or another status that is neither an error nor an answer: as it came, it is for the caller's client."""
        assert self.response is not None
        while chunk := await self.response.read():
            self.chunks.append(chunk)
        await self.close()
        verdicts.aside(self.number)

    async def _read_error(self, dialect: Dialect, verdicts: Verdicts) -> None:
        assert self.response is not None
        while chunk := await self.response.read():
            self.chunks.append(chunk)
        encoding = header_value(self.response.headers, b"content-encoding")
        body = ContentDecoder(encoding).decode(b"".join(self.chunks))
        failure = dialect.failure(self.response.status, self.response.headers, body, now=self._clock.utc())
        self.fail(failure, verdicts)

    async def _read_answer(self, commit_on: CommitOn, verdicts: Verdicts) -> bool:
        """True if it won with an open response, for the stream to go on with."""
        assert self.reader is not None
        facts, begun, unseen_bytes = self.reader.facts, False, 0
        while chunk := await self.next_chunk():
            self.chunks.append(chunk)
            if facts.failure is not None and not facts.given_up and not (facts.content and self._assembler is None):
                await self._fail_in_band(facts.failure, verdicts)
                return False
            if commit_on is CommitOn.CONTENT and facts.content:
                return verdicts.content(self.number, True)
            if commit_on is CommitOn.CONTENT and not self.sees:
                unseen_bytes += len(chunk)
                if verdicts.content(self.number, False):
                    return True
                if unseen_bytes > MOST_UNSEEN_BYTES:
                    self._fail_cut(UNREADABLE, verdicts)
                    return False
            if facts.content and not begun:
                begun = True
                verdicts.begun(self.number)
            if facts.end_mark:
                break
            if len(self._marks) == TOKENS_FOR_PACE:
                verdicts.progressed(self.number)
        if not facts.end_mark:
            await self.close()  # first, so that a caller who has the answer also has the connection back in the pool
        self._judge(commit_on, verdicts)
        if facts.end_mark:
            await self._drain()
        return False

    def _judge(self, commit_on: CommitOn, verdicts: Verdicts) -> None:
        """Say what a body comes to that has come to its end."""
        assert self.reader is not None
        facts, broken = self.reader.facts, self._rewrite()
        if broken is None and facts.failure is not None:
            self.fail(facts.failure, verdicts)
        elif broken is None and commit_on is CommitOn.CONTENT and not facts.ended and self.sees:
            self._fail_cut("cut" if facts.content else "cut_before_content", verdicts)
        elif broken is not None:
            self.broken = broken
            self._fail_cut(broken if facts.content or broken == UNREADABLE else "cut_before_content", verdicts)
        else:
            verdicts.answered(self.number, facts.valid, self.sees)

    def _fail_cut(self, error: str, verdicts: Verdicts) -> None:
        self.fail(Failure(kind=FailureKind.TRANSIENT, error=error, in_answer=True), verdicts)

    async def _fail_in_band(self, failure: Failure, verdicts: Verdicts) -> None:
        """An error inside the answer: told at once. If no other attempt has a better one, the caller gets all of it, so what
        stands behind the error is read as well."""
        if self._assembler is not None and self._assembler.streamed is True:
            self._rewrite()
            self.fail(failure, verdicts)
            return
        self.reads_rest = True
        self.fail(failure, verdicts)
        assert self.response is not None
        read_bytes = 0
        try:
            async with asyncio.timeout(REST_S):
                while self.reads_rest and read_bytes < MOST_REST_BYTES and (chunk := await self.response.read()):
                    self.chunks.append(chunk)
                    read_bytes += len(chunk)
        except Exception:  # it has failed already; what has come of it is all there is
            pass
        finally:
            self.reads_rest = False

    async def _drain(self) -> None:
        """Read to the end of a body that has said all it has to say."""
        while await self._last_bytes(end_mark=True):
            pass

    def _rewrite(self) -> str | None:
        """Make one body of a stream that was asked for in the caller's stead. None if that is done, or not wanted; else why there
        is no whole: it was cut, or cannot be read."""
        reader, response = self._assembler, self.response
        if reader is None or response is None:
            return None
        if not self.sees and reader.streamed is None:
            # In a coding nobody asked for. What calls itself one body goes to the caller as it came.
            label = header_value(response.headers, b"content-type") or ""
            return None if "json" in label and EVENT_STREAM not in label else UNREADABLE
        facts = reader.facts
        if reader.streamed is not True:
            return UNREADABLE if reader.streamed is False and not facts.ended and facts.failure is None else None
        if facts.failure is not None and not facts.given_up:
            body, status = reader.error_response(), facts.failure.status or BAD_GATEWAY
        elif not facts.ended:
            return CUT
        elif not reader.complete:
            return UNREADABLE
        else:
            body, status = reader.response(), response.status
        self.rewritten, self.chunks = (status, assembled_headers(response.headers, body)), [body]
        return None

    def _pace_s(self) -> float | None:
        """Seconds per token over the last 8 gaps without the longest, from the 9th token on; None before."""
        if len(self._marks) < TOKENS_FOR_PACE:
            return None
        gaps = [(later[0] - sooner[0], later[1] - sooner[1]) for sooner, later in pairwise(self._marks)]
        gaps.remove(max(gaps))
        tokens = sum(gap[1] for gap in gaps)
        return sum(gap[0] for gap in gaps) / tokens if tokens > 0 else None
