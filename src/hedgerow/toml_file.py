"""A TOML file that can say where in it something stands, for messages with file and line."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hedgerow.errors import SettingError

__all__ = ["TomlFile", "Where"]

HEAD = re.compile(r"\s*\[(\[)?\s*([^\]]+?)\s*\]")
Where = Sequence[str | int]
"""A place in the file: ("target", 2, "base_url") is base_url in the third [[target]]."""


class TomlFile:
    """One file as it was when it was read. name: how errors call it. Raises OSError if it cannot be read, SettingError if it is
    no TOML."""

    def __init__(self, path: str | Path, name: str = "file") -> None:
        self.path = Path(path)
        self._lines = (text := self.path.read_text(encoding="utf-8")).splitlines()
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SettingError(name, str(path), "a TOML file", fix=str(error), where=str(path)) from None

    def place(self, where: Where) -> str:
        """ "FILE:LINE" of a key, of the table it would stand in, or of the first line."""
        tables = [part for part in where if isinstance(part, str)]
        number = next((part for part in where if isinstance(part, int)), 0)
        for depth in range(len(tables), 0, -1):
            head, key = ".".join(tables[:depth]), tables[depth] if depth < len(tables) else None
            if (line := self._line(head, number, key)) is not None:
                return f"{self.path}:{line}"
        return f"{self.path}:1"

    def _line(self, head: str, number: int, key: str | None) -> int | None:
        """The line of `key` in the table of that name, the `number`th if there are several, or of the table itself."""
        seen, found, inside = -1, None, False
        for line, text in enumerate(self._lines, start=1):
            if match := HEAD.match(text):
                inside = match[2].replace('"', "").replace(" ", "") == head
                seen += inside
                inside = inside and (match[1] is None or seen == number)
                found = line if inside and found is None else found
            elif inside and key is not None and re.match(rf'\s*"?{re.escape(key)}"?\s*[=.]', text):
                return line
        return found
