"""How the page writes figures."""

__all__ = ["UNKNOWN", "count", "pair_range", "seconds", "share", "usd", "yes_or_no"]

UNKNOWN = "–"


def count(value: int) -> str:
    """1,234."""
    return f"{value:,}"


def seconds(value: float | None) -> str:
    """Two decimals below 10 s, one above."""
    return UNKNOWN if value is None else f"{value:.2f}" if abs(value) < 10 else f"{value:,.1f}"


def share(value: float | None, digits: int = 0) -> str:
    """12 %."""
    return UNKNOWN if value is None else f"{100 * value:.{digits}f} %"


def pair_range(low: float | None, high: float | None, per: float = 1.0, digits: int = 1, unit: str = "") -> str:
    """1.2–3.4."""
    return UNKNOWN if low is None or high is None else f"{per * low:.{digits}f}–{per * high:.{digits}f}{unit}"


def usd(value: float | None) -> str:
    """Dollars, with as many decimals as a call's price needs."""
    return (
        UNKNOWN
        if value is None
        else f"${value:,.2f}"
        if value >= 1
        else f"${value:.4f}"
        if value >= 0.001
        else f"${value:.6f}"
    )


def yes_or_no(value: bool | None) -> str:
    """yes, no, unknown."""
    return "unknown" if value is None else "yes" if value else "no"
