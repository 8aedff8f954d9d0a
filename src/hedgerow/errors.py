"""Every exception hedgerow raises itself.

    HedgerowError
    ├── SettingError      a setting, script or file says something that cannot be (also a ValueError)
    └── UnsupportedError  a client, transport or event loop that cannot be hedged, with the reason (also a TypeError)

The caller's own exceptions (the SDK's, httpx2's) come through unwrapped; when every attempt failed, the primary's is
raised and the others ride along as notes. A request that ran out of its `timeout_s` ends in the SDK's own time-out error.
"""

__all__ = ["HedgerowError", "SettingError", "UnsupportedError"]


class HedgerowError(Exception):
    """Root of hedgerow's own exceptions."""


class SettingError(HedgerowError, ValueError):
    """A setting has a value it cannot have.

    The message names the setting, the value, the allowed range and the fix; `where` is "file:line" if it came from a file.
    """

    def __init__(
        self, name: str, value: object, allowed: str, *, fix: str | None = None, where: str | None = None
    ) -> None:
        self.name, self.value, self.allowed, self.fix, self.where = name, value, allowed, fix, where
        place = f"{where}: " if where else ""
        hint = f"; {fix}" if fix else ""
        super().__init__(f"{place}{name} = {value!r} is not possible: allowed is {allowed}{hint}")

    def at(self, where: str) -> "SettingError":
        """The same error, said of a place in a file."""
        return SettingError(self.name, self.value, self.allowed, fix=self.fix, where=where)


class UnsupportedError(HedgerowError, TypeError):
    """Something that hedgerow refuses to hedge; the message says why and what to use instead."""
