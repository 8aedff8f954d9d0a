"""W3C trace context: the client's trace goes on, with a span of its own for each attempt."""

import re
from secrets import token_hex

__all__ = ["TraceParent"]

TRACE_PARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")


class TraceParent:
    """A client's traceparent. `trace_id` is that of the whole trace."""

    __slots__ = ("_flags", "trace_id")

    def __init__(self, trace_id: str, flags: str) -> None:
        self.trace_id, self._flags = trace_id, flags

    @classmethod
    def read(cls, text: str | None) -> "TraceParent | None":
        """The header's; None if there is none, or it is malformed (then it is as if there were none)."""
        found = TRACE_PARENT.fullmatch(text.strip()) if text else None
        return cls(found[1], found[2]) if found else None

    def span(self) -> str:
        """The header for one more span."""
        return f"00-{self.trace_id}-{token_hex(8)}-{self._flags}"
