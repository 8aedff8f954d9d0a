"""Does an endpoint queue on itself? There first-token times climb with the number of calls in flight, and a backup joins the
queue it flees from (policy.md, "What we know" 6 and "Readings" 9)."""

from collections import deque
from itertools import compress
from operator import not_
from statistics import median

__all__ = ["QueueWatch"]

RECENT, SMALLEST_HALF = 200, 20
CLIMBS_BY = 1.3


class QueueWatch:
    """One target's last 200 primaries: how many calls were in flight there, and how long the first token took."""

    __slots__ = ("_firsts", "_flying", "_found")

    def __init__(self) -> None:
        self._flying: deque[int] = deque(maxlen=RECENT)
        self._firsts: deque[float] = deque(maxlen=RECENT)
        self._found: bool | None = None

    def add(self, in_flight: int, first_s: float) -> None:
        """One more primary."""
        self._flying.append(in_flight)
        self._firsts.append(first_s)
        self._found = None

    @property
    def queues(self) -> bool:
        """Is the median first-token time of the half with more in flight at least 1.3 times that of the other half? Never
        before both halves have 20 calls. Sorted out only when somebody asks, which few calls do."""
        if self._found is None:
            self._found = self._climbs()
        return self._found

    def _climbs(self) -> bool:
        if len(self._flying) < 2 * SMALLEST_HALF:
            return False
        above_middle = float(median(self._flying)).__lt__
        busy = list(map(above_middle, self._flying))
        upper, lower = list(compress(self._firsts, busy)), list(compress(self._firsts, map(not_, busy)))
        enough = min(len(upper), len(lower)) >= SMALLEST_HALF
        return enough and median(upper) >= CLIMBS_BY * median(lower)
