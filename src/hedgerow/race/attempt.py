"""One upstream call: opens it, reads it until it can be judged, and remembers what it saw. It decides nothing."""

from collections import deque
from collections.abc import Callable, Sequence
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

__all__ = ["Attempt", "Verdicts"]

CHARS_PER_TOKEN = 4.0
BAD_GATEWAY = 502


class Verdicts:
    """Where an attempt reports to, with its number. `content` says whether the attempt has won by it; `progressed` is told of
    each chunk of a stream that is being raced, from the 9th token on."""

    __slots__ = ("answered", "content", "failed", "progressed")

    def __init__(
        self,
        *,
        content: Callable[[int], bool],
        answered: Callable[[int, bool], None],
        failed: Callable[[int, Failure], None],
        progressed: Callable[[int], None],
    ) -> None:
        self.content, self.answered, self.failed, self.progressed = content, answered, failed, progressed


class Attempt:
    """What is known of one attempt. Times are on the race's clock, None = not yet. Belongs to one race.

    `parked`: it has won with its response open; from then on the delivery reads it and whoever ends the race closes it.
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
        self.parked = self.runs_on = False
        self.rewritten: tuple[int, Sequence[tuple[bytes, bytes]]] | None = None
        self.chars_per_token = CHARS_PER_TOKEN
        self._asked_to_stream = False
        self._assembler: AssemblingReader | None = None
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
        return Progress(self.number, self.connected_s, first_s, last_s, self.tokens, self._pace_s())

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
                self.parked = verdicts.content(self.number)
            elif self.response.status != 200:
                await self._read_aside(verdicts)
            else:
                self._assembler = order.assembling_reader(self.response.headers)
                self.reader = self._assembler or order.reader(self.response.headers)
                self._decoder = ContentDecoder(header_value(self.response.headers, b"content-encoding"))
                self.parked = await self._read_answer(commit_on, verdicts)
        except Exception as error:
            self.error = error
            self.fail(call.failure_of(error), verdicts)
        finally:
            if not self.parked:
                await self.close()

    async def next_chunk(self) -> bytes:
        """The next raw bytes of an open response, looked at while they pass; b"" at the end."""
        assert self.response is not None
        chunk = await self.response.read()
        now_s = self._clock.now()
        if self.reader is None or self._decoder is None:
            self.last_chunk_s = now_s
            return chunk
        contents = self.reader.facts.chunks
        if chunk:
            self.reader.feed(self._decoder.decode(chunk))
        else:
            self.reader.finish()
        if self.reader.facts.content and (self.reader.facts.chunks > contents or self.first_token_s is None):
            if self.last_chunk_s is not None:
                self.longest_pause_s = max(self.longest_pause_s, now_s - self.last_chunk_s)
            self.last_chunk_s = now_s  # pings and comments are no sign of life
            self.first_token_s = self.first_token_s or now_s
            self._marks.append((now_s, self.tokens))
        return chunk

    @property
    def sees(self) -> bool:
        """Can the content be looked at? If not, its first bytes have to do."""
        return self._decoder is not None and self._decoder.sees

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
        verdicts.answered(self.number, True)

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
        facts = self.reader.facts
        while chunk := await self.next_chunk():
            self.chunks.append(chunk)
            if facts.failure is not None and not facts.content:
                self._rewrite()
                self.fail(facts.failure, verdicts)
                return False
            if commit_on is CommitOn.CONTENT and (facts.content or not self.sees):
                return verdicts.content(self.number)
            if len(self._marks) == TOKENS_FOR_PACE:
                verdicts.progressed(self.number)
        whole = self._rewrite()
        if facts.failure is not None:
            self.fail(facts.failure, verdicts)
        elif (commit_on is CommitOn.CONTENT and not facts.ended) or not whole:
            self.fail(
                Failure(kind=FailureKind.TRANSIENT, error="cut_before_content" if not facts.content else "cut"),
                verdicts,
            )
        else:
            await self.close()  # first, so that a caller who has the answer also has the connection back in the pool
            verdicts.answered(self.number, facts.valid)
        return False

    def _rewrite(self) -> bool:
        """Make one body of a stream that was asked for in the caller's stead. False: it was cut, and there is no whole."""
        reader, response = self._assembler, self.response
        if reader is None or response is None or reader.streamed is not True:
            return True
        failure = reader.facts.failure
        if failure is None and not (reader.facts.ended and reader.complete):
            return False
        body = reader.response() if failure is None else reader.error_response()
        status = 200 if failure is None else failure.status or BAD_GATEWAY
        self.rewritten, self.chunks = (status, assembled_headers(response.headers, body)), [body]
        return True

    def _pace_s(self) -> float | None:
        """Seconds per token over the last 8 gaps without the longest, from the 9th token on; None before."""
        if len(self._marks) < TOKENS_FOR_PACE:
            return None
        gaps = [(later[0] - sooner[0], later[1] - sooner[1]) for sooner, later in pairwise(self._marks)]
        gaps.remove(max(gaps))
        tokens = sum(gap[1] for gap in gaps)
        return sum(gap[0] for gap in gaps) / tokens if tokens > 0 else None
