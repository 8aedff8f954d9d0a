"""What is known of a request before it is sent, and the key under which its statistics are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["SIZES", "Key", "RequestFacts", "StreamedRequest", "WireRequest", "size_class"]

SIZE_CLASSES = ((1_000, "1k"), (8_000, "8k"), (32_000, "32k"))
SIZES = (*(name for _, name in SIZE_CLASSES), "more")


@dataclass(frozen=True, slots=True, kw_only=True)
class WireRequest:
    """A request as it goes over the wire. `path` has no query; `body` None = not replayable."""

    method: str
    path: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes | None
    _first: Mapping[bytes, bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first = {name.lower(): value for name, value in reversed(self.headers)}
        object.__setattr__(self, "_first", first)

    def with_body(self, body: bytes) -> "WireRequest":
        """The same request, once its body has come."""
        whole = object.__new__(WireRequest)
        for name, value in (("method", self.method), ("path", self.path), ("headers", self.headers), ("body", body)):
            object.__setattr__(whole, name, value)
        object.__setattr__(whole, "_first", self._first)
        return whole

    def header(self, name: bytes) -> str | None:
        """The first value of a header (lower-case `name`), decoded as Latin-1; None if absent."""
        value = self._first.get(name)
        return None if value is None else value.decode("latin-1")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedRequest:
    """How a request asks for the same answer as a stream: with another body, or, where the API asks by address, at another.

    `ending`: what its path ends with, and what it ends with instead; `query`: parameters laid over the caller's.
    """

    body: bytes
    ending: tuple[str, str] | None = None
    query: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """What a dialect reads out of a request.

    `dialect` names the API ("openai_chat", "openai_embeddings", "generic"). `stream`: the caller asked for a stream.
    `answer_known`: the dialect can tell content, end and errors of the answer apart; otherwise the first response is the
    answer. `cached_context`: it names a prompt cache, which a copy elsewhere would miss. `answers`: how many it asks for, each of
    `max_output_tokens` at most.
    `forbidden`: reasons why it must never run twice ("background", "unknown_field:foo"). `needs`: permissions
    without which it does not ("store", "server_tools", "n", "audio"). Both empty = safe to run twice.
    """

    dialect: str
    model: str | None = None
    stream: bool = False
    tools: bool = False
    effort: str | None = None
    cached_context: bool = False
    input_tokens_estimate: int = 0
    max_output_tokens: int | None = None
    answers: int = 1
    answer_known: bool = False
    forbidden: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What latency statistics are kept under: a short chat and a 100k-token call never share a distribution.

    `stream`: the answer comes as a stream, whoever asked for it, so that its first token can be seen."""

    target: str
    dialect: str
    model: str | None
    stream: bool
    tools: bool
    effort: str | None
    size: str

    @classmethod
    def of(cls, facts: RequestFacts, target: str, *, streamed: bool = False) -> "Key":
        """The key of a request at a target."""
        return cls(
            target=target,
            dialect=facts.dialect,
            model=facts.model,
            stream=facts.stream or streamed,
            tools=facts.tools,
            effort=facts.effort,
            size=size_class(facts.input_tokens_estimate),
        )


def size_class(input_tokens: int) -> str:
    """ "1k", "8k", "32k" (input of at most so many tokens) or "more"."""
    return next((name for limit, name in SIZE_CLASSES if input_tokens <= limit), "more")
