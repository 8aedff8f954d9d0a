"""A TOML file that can say where in it something stands, for messages with file and line."""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hedgerow.errors import SettingError

__all__ = ["TomlFile", "Where"]

HEAD = re.compile(r"\s*\[(\[)?\s*([^\]]+?)\s*\]")
POSITION = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
# What tomllib says that is the same for every file. Other messages of it quote the file.
CONSTANT = (
    "Cannot overwrite a value",
    "Escaped character is not a Unicode scalar value",
    "Expected ",
    "Invalid ",
    "Unclosed ",
    "Unescaped ",
    "Unterminated ",
)
IN_GENERAL = {"Cannot ": "a name stands there twice", "Duplicate ": "a name stands there twice"}
Where = Sequence[str | int]
"""A place in the file: ("target", 2, "base_url") is base_url in the third [[target]]."""


class TomlFile:
    """One file as it was when it was read. name: how errors call it. Raises OSError if it cannot be read, SettingError if it is
    no TOML; its message says where and what kind of mistake, never what stands there, since that may be a key."""

    def __init__(self, path: str | Path, name: str = "file") -> None:
        self.path = Path(path)
        text, trouble = _text_of(self.path.read_bytes())
        self._lines = text.replace("\r\n", "\n").split("\n")
        self.data: dict[str, Any] = {}
        if trouble is None:
            self.data, trouble = _data_of(text)
        if trouble is not None:  # here, where no error is under way whose traceback would show the file
            line, fix = trouble
            where = str(path) if line is None else f"{path}:{line}"
            raise SettingError(name, str(path), "a TOML file in UTF-8", fix=fix, where=where)

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


def _text_of(data: bytes) -> tuple[str, tuple[int | None, str] | None]:
    """A file's text, or the line and the kind of what is wrong with it. A byte order mark is no part of it."""
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        return "", (data.count(b"\n", 0, error.start) + 1, "it is not UTF-8: save it as that")


def _data_of(text: str) -> tuple[dict[str, Any], tuple[int | None, str] | None]:
    try:
        return tomllib.loads(text), None
    except tomllib.TOMLDecodeError as error:
        match = POSITION.fullmatch(str(error))
        if match is None:
            return {}, (None, "it cannot be read")
        line = int(match[2]) if match[2] else text.count("\n") + 1
        said = next(
            (general for start, general in IN_GENERAL.items() if match[1].startswith(start)), "an illegal character"
        )
        kind = match[1] if match[1].startswith(CONSTANT) else said
        return {}, (line, f"{kind} (column {match[3]})" if match[3] else f"{kind} (at its end)")
    except RecursionError:
        return {}, (None, "it is nested too deeply")
    except ValueError:  # of int(), for more than 4300 digits
        return {}, (None, "a number in it is too long")
