"""The quantile object of the machine-readable output."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from hedgerow.statistics.quantile import quantile

__all__ = ["Quantiles"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """The quantile object of the machine-readable output; None where there was nothing to measure (`n` = 0)."""

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
        at = [quantile(ordered, share) if ordered else None for share in (0.5, 0.9, 0.95, 0.99, 0.999)]
        return cls(p50=at[0], p90=at[1], p95=at[2], p99=at[3], p999=at[4], n=len(ordered))

    def as_dict(self) -> dict[str, float | int | None]:
        """JSON-ready."""
        return asdict(self)
