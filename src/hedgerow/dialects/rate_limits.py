"""How much of its advertised rate limits a provider says is left, from the headers of any response."""

from hedgerow.dialects.headers import Headers
from hedgerow.short_text import MOST_COUNTED

__all__ = ["room_left"]

KINDS = ("requests", "tokens", "input-tokens", "output-tokens")
PREFIXES = ("x-ratelimit-{}-{}", "anthropic-ratelimit-{1}-{0}")  # OpenAI, Azure, Mistral, Groq; Anthropic
PAIRS = [
    tuple(prefix.format(what, kind).encode() for what in ("remaining", "limit"))
    for prefix in PREFIXES
    for kind in KINDS
]
NAMES = frozenset(name for pair in PAIRS for name in pair)


def room_left(headers: Headers) -> float | None:
    """The smallest share 0..1 of requests or tokens that is left; None if the provider does not say. Azure's -1 and 0 limits
    mean nothing and are passed over."""
    said: dict[bytes, float] = {}
    for name, value in headers:
        if (known := name.lower()) in NAMES:
            try:
                number = float(value)
            except ValueError:
                continue
            if abs(number) <= MOST_COUNTED:
                said[known] = number
    if not said:
        return None
    shares = [
        said[left] / said[limit] for left, limit in PAIRS if left in said and said.get(limit, 0) > 0 and said[left] >= 0
    ]
    return min(*shares, 1.0) if shares else None
