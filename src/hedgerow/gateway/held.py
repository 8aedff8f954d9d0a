"""How much of providers' answers may be in memory that nobody has got yet: of one, and of all together."""

from hedgerow.errors import HedgerowError

__all__ = ["AnswerTooLarge", "Held", "HeldAll", "TooMuchHeld"]

MOST_ERROR_BYTES = 1_000_000


class AnswerTooLarge(HedgerowError):
    """An answer that has to be whole before it can be delivered has more than `max_answer`."""


class TooMuchHeld(HedgerowError):
    """All answers together that wait to be whole have more than `max_held`."""


class HeldAll:
    """One worker's total, in bytes."""

    def __init__(self) -> None:
        self.now_bytes = 0


class Held:
    """What one exchange holds while it lasts: the answers of all its attempts. most_bytes: of one of them; of_all_bytes: of all
    exchanges."""

    def __init__(self, total: HeldAll, *, most_bytes: int, of_all_bytes: int) -> None:
        self._total, self._most_bytes, self._of_all_bytes = total, most_bytes, of_all_bytes
        self._own_bytes = 0

    def take(self, more_bytes: int, answer_bytes: int, *, error: bool) -> None:
        """So much more has come of an answer, which makes answer_bytes so far. Raises AnswerTooLarge and TooMuchHeld."""
        most_bytes = min(self._most_bytes, MOST_ERROR_BYTES) if error else self._most_bytes
        if answer_bytes > most_bytes:
            what = "error" if error else "answer"
            raise AnswerTooLarge(f"the provider's {what} has more than {most_bytes} bytes")
        if self._total.now_bytes + more_bytes > self._of_all_bytes:
            raise TooMuchHeld(f"answers that wait to be whole have more than {self._of_all_bytes} bytes together")
        self._total.now_bytes += more_bytes
        self._own_bytes += more_bytes

    def __enter__(self) -> "Held":
        return self

    def __exit__(self, *error: object) -> None:
        """The exchange is over."""
        self._total.now_bytes -= self._own_bytes
        self._own_bytes = 0
