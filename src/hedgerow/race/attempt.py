"""One upstream call: opens it, reads it until it can be judged, and remembers what it saw. It decides nothing."""

from collections.abc import Callable

from hedgerow.clock import Clock
from hedgerow.dialects.base import AnswerReader, Dialect
from hedgerow.dialects.encoding import ContentDecoder
from hedgerow.dialects.headers import header_value
from hedgerow.policy.trouble import Progress
from hedgerow.race.state import CommitOn
from hedgerow.race.upstream import Call, UpstreamResponse
from hedgerow.values.failure import Failure, FailureKind
from hedgerow.values.request import RequestFacts

__all__ = ["Attempt", "Verdicts"]

CHARS_PER_TOKEN = 4.0


class Verdicts:
    """Where an attempt reports to, with its number. `content` says whether the attempt has won by it."""

    __slots__ = ("answered", "content", "failed")

    def __init__(
        self,
        *,
        content: Callable[[int], bool],
        answered: Callable[[int, bool], None],
        failed: Callable[[int, Failure], None],
    ) -> None:
        self.content, self.answered, self.failed = content, answered, failed


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
        self.cancelled_s: float | None = None
        self.closed_s: float | None = None
        self.chunks: list[bytes] = []
        self.response: UpstreamResponse | None = None
        self.reader: AnswerReader | None = None
        self.error: Exception | None = None
        self.failure: Failure | None = None
        self.parked = False
        self._streamed = False
        self._clock = clock
        self._decoder: ContentDecoder | None = None

    def connected(self, *, reused: bool) -> None:
        """ConnectionNotes: it no longer waits for the pool."""
        if self.connected_s is None:
            self.connected_s, self.reused = self._clock.now(), reused

    @property
    def progress(self) -> Progress:
        """A snapshot for the machine."""
        facts = self.reader.facts if self.reader else None
        tokens = facts.visible_chars / CHARS_PER_TOKEN if facts else 0.0
        return Progress(self.number, self.connected_s, self.first_token_s, self.last_chunk_s, tokens)

    async def run(
        self, call: Call, dialect: Dialect, facts: RequestFacts, commit_on: CommitOn, verdicts: Verdicts
    ) -> None:
        """Send it and read until it is judged: committed to, complete, or failed. Leaves the response open only when it
        reported content, for the winner's stream to go on with; cancelled, it closes what it opened."""
        try:
            self.response = await call.open(self.target, self)
            self.headers_s = self._clock.now()
            if self.response.status >= 400:
                await self._read_error(dialect, verdicts)
            elif commit_on is CommitOn.HEADERS or self.response.status != 200:
                self.parked = verdicts.content(self.number)
            else:
                self.reader = dialect.reader(facts, self.response.headers)
                self._streamed = facts.stream
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
        self.last_chunk_s = self._clock.now()
        if self.reader is not None and self._decoder is not None:
            if chunk:
                self.reader.feed(self._decoder.decode(chunk))
            else:
                self.reader.finish()
            if self.first_token_s is None and self.reader.facts.content:
                self.first_token_s = self.last_chunk_s
        return chunk

    @property
    def streamed(self) -> bool:
        """Does its answer come as a stream that can be watched?"""
        return self._streamed

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
                self.fail(facts.failure, verdicts)
                return False
            if commit_on is CommitOn.CONTENT and (facts.content or not self.sees):
                return verdicts.content(self.number)
        if facts.failure is not None:
            self.fail(facts.failure, verdicts)
        elif commit_on is CommitOn.CONTENT and not facts.ended:
            self.fail(Failure(kind=FailureKind.TRANSIENT, error="cut_before_content"), verdicts)
        else:
            await self.close()  # first, so that a caller who has the answer also has the connection back in the pool
            verdicts.answered(self.number, facts.valid)
        return False
