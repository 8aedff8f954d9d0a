"""The quantile object of the machine-readable output."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from hedgerow.statistics.quantile import quantile

__all__ = ["SHARES", "Quantiles"]

SHARES = (0.5, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Seconds (linear interpolation); None where there was nothing to measure (`n` = 0)."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Quantiles":
        """Of values in any order."""
        ordered = sorted(values)
        return cls.at([quantile(ordered, share) if ordered else None for share in SHARES], len(ordered))

    @classmethod
    def at(cls, found: Sequence[float | None], n: int) -> "Quantiles":
        """From the values at SHARES, however they were found."""
        p50, p90, p95, p99, p999 = found
        return cls(p50=p50, p90=p90, p95=p95, p99=p99, p999=p999, n=n)

    def as_dict(self) -> dict[str, float | int | None]:
        """JSON-ready."""
        return asdict(self)
