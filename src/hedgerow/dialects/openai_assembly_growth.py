"""How a field that is streamed in pieces becomes the one value a whole answer has.

Each class is one way of growing. A null opens a field and never takes anything away; a field that saw nothing else is null.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from hedgerow.dialects.lenient_json import is_array, is_object

__all__ = [
    "Appended",
    "First",
    "Growing",
    "Latest",
    "Loose",
    "Name",
    "Parts",
    "Record",
    "Replaced",
    "Text",
    "TextOrParts",
]


class Growing(Protocol):
    """One field while it grows. Not shared. It owns the pieces it is given: it may keep and change them."""

    def take(self, piece: object) -> None:
        """The next piece, never None. What does not fit is taken as it is or passed over, never an error."""

    def value(self) -> object:
        """What the pieces have become; None if there were none. Ends the growth: to be asked once."""
        ...


Kinds = Mapping[str, Callable[[], Growing]]


class First:
    """The first piece that says something: an id, which Azure leaves empty in a chunk before the first."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: object = None

    def take(self, piece: object) -> None:
        self._value = self._value or piece

    def value(self) -> object:
        return self._value


class Replaced:
    """The last piece that is not empty, as it is: usage, which some servers repeat, each time with the total so far."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: object = None

    def take(self, piece: object) -> None:
        if self._value is None or not _says_nothing(piece):
            self._value = piece

    def value(self) -> object:
        return self._value


class Latest:
    """The last piece that is not empty; objects are laid over each other, field by field. For all fields we do not know."""

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value: object = None

    def take(self, piece: object) -> None:
        if is_object(self._value) and is_object(piece):
            _lay_over(self._value, piece)
        elif self._value is None or not _says_nothing(piece):
            self._value = piece

    def value(self) -> object:
        return self._value


class Appended(Latest):
    """A list whose pieces are its next entries."""

    __slots__ = ()

    def take(self, piece: object) -> None:
        if is_array(self._value) and is_array(piece):
            self._value += piece
        elif self._value is None or not is_array(self._value):
            super().take(piece)


class Loose(Appended):
    """Unknown fields of a delta: lists bring their next entries, as deltas do; of anything else, the latest.

    Strings are not joined: a label that is repeated in each delta would come out as a stutter.
    """

    __slots__ = ()

    def take(self, piece: object) -> None:
        if is_array(piece):
            super().take(piece)
        else:
            Latest.take(self, piece)


class Text:
    """A string in pieces."""

    __slots__ = ("_other", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._other: object = None

    def take(self, piece: object) -> None:
        if isinstance(piece, str):
            self._pieces.append(piece)
        else:
            self._other = piece  # arguments that come as an object, whole

    def value(self) -> object:
        return "".join(self._pieces) if self._pieces else self._other


class Name(Text):
    """A string in pieces, or whole in each piece: some servers repeat a tool's name in every delta."""

    __slots__ = ()

    def take(self, piece: object) -> None:
        if not (isinstance(piece, str) and piece == "".join(self._pieces)) or not self._pieces:
            super().take(piece)


class Record:
    """An object whose fields grow each in its own way: those of `kinds` in theirs, all the rest as `others`."""

    __slots__ = ("_fields", "_kinds", "_others")

    def __init__(self, kinds: Kinds, others: Callable[[], Growing] = Latest) -> None:
        self._kinds = kinds
        self._others = others
        self._fields: dict[str, Growing] | None = None

    def take(self, piece: object) -> None:
        if not is_object(piece):
            return
        fields = self._fields
        if fields is None:
            fields = self._fields = {}
        for name, inner in piece.items():
            field = fields.get(name)
            if field is None:
                field = fields[name] = self._kinds.get(name, self._others)()
            if inner is not None:
                field.take(inner)

    def value(self) -> object:
        return None if self._fields is None else self.grown()

    def grown(self) -> dict[str, object]:
        """The fields so far; none if there was no piece."""
        return {name: field.value() for name, field in (self._fields or {}).items()}


class Parts:
    """A list of typed parts of which the last may go on: Mistral's content, OpenRouter's reasoning_details.

    A part goes on while its type and index stay and its id does not change, if it has a field that is text in pieces;
    a part without one (encrypted reasoning, a reference) comes whole.
    """

    __slots__ = ("_entries", "_kinds", "_open")

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._entries: list[Growing] = []
        self._open: dict[str, object] | None = None  # what marks the last part, if it may go on

    def take(self, piece: object) -> None:
        for part in piece if is_array(piece) else ():
            if not is_object(part):
                self._start(Latest(), None)
            elif not self._goes_on(part):
                grows = any(field in self._kinds for field in part)
                marks = {name: part.get(name) for name in ("type", "index", "id")}
                self._start(Record(self._kinds), marks if grows else None)
            if part is not None:
                self._entries[-1].take(part)

    def value(self) -> object:
        return [entry.value() for entry in self._entries]

    def _start(self, entry: Growing, marks: dict[str, object] | None) -> None:
        self._entries.append(entry)
        self._open = marks

    def _goes_on(self, part: dict[str, object]) -> bool:
        marks, name = self._open, part.get("id")
        if marks is None or part.get("type") != marks["type"] or part.get("index") != marks["index"]:
            return False
        return name is None or marks["id"] is None or name == marks["id"]


class TextOrParts(Text):
    """A string in pieces, which becomes a list of parts as soon as one piece is such a list (Mistral, once it thinks)."""

    __slots__ = ("_kinds", "_parts")

    def __init__(self, kinds: Kinds) -> None:
        super().__init__()
        self._kinds = kinds
        self._parts: Parts | None = None

    def take(self, piece: object) -> None:
        if is_array(piece) and piece:
            if self._parts is None:
                self._parts = Parts(self._kinds)
                self._take_text("".join(self._pieces))
            self._parts.take(piece)
        elif self._parts is not None and isinstance(piece, str):
            self._take_text(piece)
        else:
            super().take(piece)

    def value(self) -> object:
        return super().value() if self._parts is None else self._parts.value()

    def _take_text(self, text: str) -> None:
        if text and self._parts is not None:
            self._parts.take([{"type": "text", "text": text}])


def _says_nothing(piece: object) -> bool:
    """Empty texts and lists close a stream at some servers; they stand for "nothing new", not for "take it back"."""
    return piece in ("", [], {})


def _lay_over(below: dict[str, object], above: dict[str, object]) -> None:
    # Pairs still to be done, not a recursion: the depth is the server's choice.
    pairs = [(below, above)]
    while pairs:
        old, new = pairs.pop()
        for name, value in new.items():
            kept = old.get(name)
            if is_object(kept) and is_object(value):
                pairs.append((kept, value))
            elif kept is None or not (value is None or _says_nothing(value)):
                old[name] = value
