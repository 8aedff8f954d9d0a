"""What has been learnt of an answer while its bytes went by."""

from dataclasses import dataclass

from hedgerow.values.failure import Failure

__all__ = ["AnswerFacts", "Usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Billable tokens as the provider reported them. `input_tokens` includes the cached part, `output_tokens` reasoning."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(slots=True, kw_only=True)
class AnswerFacts:
    """A dialect's reader fills this in as bytes arrive; everyone else only reads it.

    `content`: the first content (text, reasoning, tool or audio delta) has been seen — never a role chunk, ping or comment.
    `visible_chars`: characters of visible output so far; `hidden_chars`: of reasoning. `ended`: the dialect's own end was
    seen. `end_mark`: so was the mark after which a stream has nothing more to say ([DONE], message_stop, …); `done`: it was
    [DONE], at which clients stop reading. `useful`: there is something a caller can use (text, tool call, refusal, audio),
    and not content_filter alone. `overlooked`: something was too large to be looked at, so that nobody knows what
    else the answer has. `failure`: an in-band error. `given_up`: the failure is nothing but a finish reason by which
    the server says that it broke off. `valid` = a complete answer that may win a buffered race.
    """

    content: bool = False
    visible_chars: int = 0
    hidden_chars: int = 0
    chunks: int = 0
    ended: bool = False
    end_mark: bool = False
    done: bool = False
    given_up: bool = False
    overlooked: bool = False
    useful: bool = False
    finish_reason: str | None = None
    failure: Failure | None = None
    usage: Usage | None = None
    model: str | None = None
    service_tier: str | None = None

    @property
    def valid(self) -> bool:
        """Complete, useful and not an error."""
        return self.ended and self.useful and self.failure is None
