"""Reads answers that are one JSON body: nothing is to be seen of them before they end."""

from collections.abc import Mapping

from hedgerow.dialects.framing import AnswerFraming
from hedgerow.dialects.headers import Headers
from hedgerow.dialects.lenient_json import is_array, is_crowded, is_object, loads_or_none
from hedgerow.values.answer import AnswerFacts

__all__ = ["WholeAnswerReader"]


class WholeAnswerReader:
    """One attempt's reader; not shared. A dialect's own says in `read` what the object means; a list stands for its first."""

    __slots__ = ("_framing", "facts")

    def __init__(self, headers: Headers) -> None:
        self.facts = AnswerFacts()
        self._framing = AnswerFraming(headers)

    def feed(self, data: bytes) -> None:
        """More decoded bytes: kept until the end."""
        self._framing.feed(data)
        self.facts.overlooked = self._framing.truncated

    def finish(self) -> None:
        """The body ended cleanly: read it."""
        for event in self._framing.finish():
            if is_crowded(event.data):
                self.facts.overlooked = True
                continue
            answer = loads_or_none(event.data)
            self.facts.ended = answer is not None
            if is_array(answer) and answer:
                answer = answer[0]
            if is_object(answer):
                self.read(answer)

    def read(self, answer: Mapping[str, object]) -> None:
        """Fill in the facts."""
        raise NotImplementedError
