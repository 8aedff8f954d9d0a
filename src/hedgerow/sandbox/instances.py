"""Makes a value that fits a JSON schema: the arguments of a tool call, or an answer whose form the request declared.

The same schema has the same value, and a small one: what may be left out is, an array has one item if it may, a free text is
its property's name. Knows JSON Schema as far as the APIs take it, and Gemini's own notation of it (OBJECT, nullable).
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

__all__ = ["NoInstanceError", "instance_of"]

MAX_DEPTH = 100
# Below so many arrays, one that may be empty is: schemas whose parts name each other would grow without end.
MAX_ARRAYS = 3
TEXT = "text"
EXAMPLES = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "time": "03:04:05Z",
    "duration": "P1D",
    "email": "ann@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
# Texts that are tried where only a pattern is known: such runs of every length, and the examples above.
RUNS = ("a", "A", "0", "a1", "A1")
LONGEST_RUN = 64
KINDS = ("null", "boolean", "integer", "number", "string", "array", "object")
KEYS_OF_KIND = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "dependentRequired"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
LARGER_COUNTS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
SMALLER_COUNTS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


class NoInstanceError(Exception):
    """No value fits, or none that can be found here; the text says where in the schema."""


def instance_of(schema: object) -> object:
    """A value that fits. Raises NoInstanceError."""
    return _Maker(schema).make(schema, _Place())


class _Place:
    """Where in the schema we are: `path` for messages, `refs` that are being followed, `arrays` around."""

    def __init__(self, path: str = "", refs: frozenset[str] = frozenset(), arrays: int = 0) -> None:
        self.path, self.refs, self.arrays = path, refs, arrays

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2].partition("[")[0] or TEXT

    def inside(self, name: str) -> "_Place":
        return _Place(f"{self.path}.{name}".lstrip("."), self.refs, self.arrays)

    def item(self, number: int) -> "_Place":
        return _Place(f"{self.path}[{number}]", self.refs, self.arrays + 1)

    def following(self, ref: str) -> "_Place":
        return _Place(self.path, self.refs | {ref}, self.arrays)

    def refuse(self, why: str) -> NoInstanceError:
        return NoInstanceError(f"{self.path or 'the schema'}: {why}")


class _Maker:
    def __init__(self, root: object) -> None:
        self._root = root

    def make(self, schema: object, place: _Place) -> object:
        if place.path.count(".") > MAX_DEPTH or place.path.count("[") > MAX_DEPTH:
            raise place.refuse(f"deeper than {MAX_DEPTH} levels")
        if schema is False:
            raise place.refuse("nothing fits `false`")
        refusal: NoInstanceError | None = None
        try:
            for plain, where in self._plain(_table(schema), place):
                try:
                    return self._of_plain(plain, where)
                except NoInstanceError as error:
                    refusal = refusal or error
        except RecursionError:
            raise place.refuse(f"deeper than {MAX_DEPTH} levels") from None
        raise refusal or place.refuse("it names itself without end")

    def _plain(self, schema: Mapping[str, object], place: _Place) -> "Iterator[tuple[Mapping[str, object], _Place]]":
        """The schema without references and choices, in each of the ways in which they can be taken."""
        ref = schema.get("$ref")
        if isinstance(ref, str):
            if ref in place.refs:
                return
            rest = {key: value for key, value in schema.items() if key != "$ref"}
            yield from self._plain(_merged(rest, self._found(ref, place)), place.following(ref))
            return
        for key in ("anyOf", "oneOf"):
            if key in schema:
                rest = {name: value for name, value in schema.items() if name != key}
                for choice in _list(schema[key]):
                    if choice is not False:
                        yield from self._plain(_merged(rest, _table(choice)), place)
                return
        if "allOf" in schema:
            merged: Mapping[str, object] = {name: value for name, value in schema.items() if name != "allOf"}
            for part in _list(schema["allOf"]):
                if part is False:
                    return
                merged = _merged(merged, _table(part))
            yield from self._plain(merged, place)
            return
        yield schema, place

    def _found(self, ref: str, place: _Place) -> Mapping[str, object]:
        """What a reference inside the same schema names; others cannot be followed."""
        found = self._root
        for step in ref.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and step.isdecimal() and int(step) < len(cast(list[object], found)):
                found = cast(list[object], found)[int(step)]
            elif isinstance(found, dict) and step in found:
                found = cast(dict[str, object], found)[step]
            else:
                raise place.refuse(f"{ref} leads nowhere")
        if not ref.startswith("#") or (len(ref) > 1 and ref[1] != "/"):
            raise place.refuse(f"{ref} is not inside this schema")
        return _table(found)

    def _of_plain(self, schema: Mapping[str, object], place: _Place) -> object:
        kinds = _kinds(schema)
        if "enum" in schema or "const" in schema:
            values = _list(schema["enum"]) if "enum" in schema else [schema["const"]]
            for value in values:
                wanted = "const" not in schema or value == schema["const"]
                if wanted and any(_is_of(value, kind) for kind in kinds):
                    return value
            raise place.refuse("none of its fixed values is left")
        refusal: NoInstanceError | None = None
        for kind in kinds:
            try:
                return self._of_kind(kind, schema, place)
            except NoInstanceError as error:
                refusal = refusal or error
        raise refusal or place.refuse("no type is left")

    def _of_kind(self, kind: str, schema: Mapping[str, object], place: _Place) -> object:
        if kind == "object":
            return self._object(schema, place)
        if kind == "array":
            return self._array(schema, place)
        if kind == "string":
            return _text(schema, place)
        if kind in ("integer", "number"):
            return _number(schema, place, whole=kind == "integer")
        return True if kind == "boolean" else None

    def _object(self, schema: Mapping[str, object], place: _Place) -> dict[str, object]:
        properties, others = _table(schema.get("properties")), schema.get("additionalProperties")
        depends = _table(schema.get("dependentRequired"))
        waiting = [name for name in _list(schema.get("required")) if isinstance(name, str)]
        made: dict[str, object] = {}
        while waiting:
            name = waiting.pop(0)
            if name not in made:
                made[name] = self.make(properties.get(name, others), place.inside(name))
                waiting += [each for each in _list(depends.get(name)) if isinstance(each, str)]
        least = _count(schema.get("minProperties")) or 0
        free = (f"{TEXT}{number}" for number in range(least))
        for name in (*properties, *free):
            if len(made) >= least:
                break
            if name not in made:
                made[name] = self.make(properties.get(name, others), place.inside(name))
        return made

    def _array(self, schema: Mapping[str, object], place: _Place) -> list[object]:
        least, most = _count(schema.get("minItems")) or 0, _count(schema.get("maxItems"))
        first, rest = _list(schema.get("prefixItems")), schema.get("items")
        if isinstance(rest, list):  # as drafts before 2020 wrote the first items
            first, rest = _list(cast(object, rest)), schema.get("additionalItems")
        contained = [schema["contains"]] if "contains" in schema and schema.get("minContains") != 0 else []
        if most is not None and least > most:
            raise place.refuse(f"minItems {least} is more than maxItems {most}")
        wanted = max(least, len(contained), len(first) or 1)
        wanted = wanted if most is None else min(wanted, most)
        made: list[object] = []
        for number in range(wanted):
            each = first[number] if number < len(first) else rest
            if contained and number == len(first):
                each = {"allOf": [each if each is not None else True, contained[0]]}
            try:
                if number >= least and not contained and place.arrays >= MAX_ARRAYS:
                    break
                made.append(self._item(each, made, place.item(number), unique=schema.get("uniqueItems") is True))
            except NoInstanceError:
                if number < max(least, len(contained)):
                    raise
                break
        return made

    def _item(self, schema: object, made: Sequence[object], place: _Place, *, unique: bool) -> object:
        """One more item, unlike those there are if it has to be."""
        item = self.make(schema, place)
        if not unique or item not in made:
            return item
        for other in self._unlike(schema, place):
            if other not in made:
                return other
        raise place.refuse("no more different items can be found")

    def _unlike(self, schema: object, place: _Place) -> Iterator[object]:
        for plain, where in self._plain(_table(schema), place):
            yield from _list(plain.get("enum"))
            kinds = () if "enum" in plain or "const" in plain else _kinds(plain)
            for kind in kinds:
                yield from self._others(kind, plain, where)

    def _others(self, kind: str, schema: Mapping[str, object], place: _Place) -> Iterator[object]:
        """More values of one kind; as many as an array of a request may want."""
        if kind == "boolean":
            yield from (True, False)
        step, start = _float(schema.get("multipleOf")) or 1, _float(schema.get("minimum"))
        for number in range(1, 101):
            try:
                if kind in ("integer", "number"):
                    # Upwards from the least, or from wherever the first one was.
                    low = step * number + (start if start is not None else 0)
                    yield _number({**schema, "minimum": low}, place, whole=kind == "integer")
                elif kind == "string" and "format" not in schema:
                    yield _text({**schema, "minLength": len(place.name) + number}, place)
            except NoInstanceError:
                return


def _kinds(schema: Mapping[str, object]) -> tuple[str, ...]:
    """The types that a value may have, the likeliest first; null last, since it says nothing."""
    named = schema.get("type")
    given = [str(each).lower() for each in ([named] if isinstance(named, str) else _list(named))]
    if "type" not in schema:
        given = [kind for kind, keys in KEYS_OF_KIND.items() if any(key in schema for key in keys)] or ["string"]
        if "enum" in schema or "const" in schema:
            given = list(KINDS)
    if schema.get("nullable") is True:
        given.append("null")
    return tuple(sorted((kind for kind in given if kind in KINDS), key=lambda kind: kind == "null"))


def _is_of(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    types = {"null": type(None), "number": int | float, "string": str, "array": list, "object": dict}
    return kind in types and isinstance(value, types[kind])


def _text(schema: Mapping[str, object], place: _Place) -> str:
    least, most = _count(schema.get("minLength")) or 0, _count(schema.get("maxLength"))
    pattern, shape = schema.get("pattern"), schema.get("format")
    wanted: list[str] = [EXAMPLES[shape]] if isinstance(shape, str) and shape in EXAMPLES else []
    name = place.name
    if not wanted:
        # A name that is too short is said again, one that is too long is cut.
        wanted.append((name * (-(-least // len(name)) or 1))[: max(least, len(name)) if most is None else most])
    if isinstance(pattern, str):
        wanted += EXAMPLES.values()
        wanted += ((run * length)[:length] for length in range(LONGEST_RUN + 1) for run in RUNS)
    for text in wanted:
        if least <= len(text) and (most is None or len(text) <= most) and _matches(pattern, text):
            return text
    raise place.refuse(f"no text found for {dict(schema)}")


def _matches(pattern: object, text: str) -> bool:
    if not isinstance(pattern, str):
        return True
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return False


def _number(schema: Mapping[str, object], place: _Place, *, whole: bool) -> int | float:
    """1 if it fits, or a number near one of its bounds."""
    least, most = _float(schema.get("minimum")), _float(schema.get("maximum"))
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    # OpenAPI before 3.1 has true there, which is said of minimum and maximum.
    above = least if above is True else _float(above)
    below = most if below is True else _float(below)
    step = _float(schema.get("multipleOf"))
    ends = [each for each in (least, above, most, below) if each is not None]
    tried = [1.0, step or 1.0, 0.0, *ends]
    for end in ends:
        first = math.floor(end / (step or 1.0))
        tried += [(first + number) * (step or 1.0) for number in (0, 1, 2, -1)]
    tried.append(sum(ends) / len(ends) if ends else 0.0)
    for value in tried:
        inside = (least is None or value >= least) and (most is None or value <= most)
        inside = inside and (above is None or value > above) and (below is None or value < below)
        if inside and (not step or (value / step).is_integer()) and (not whole or value.is_integer()):
            return int(value) if value.is_integer() else value
    raise place.refuse(f"no number found for {dict(schema)}")


def _merged(one: Mapping[str, object], other: Mapping[str, object]) -> Mapping[str, object]:
    """A schema that demands what both demand."""
    both = {**one, **other}
    for key in one.keys() & other.keys():
        mine, theirs = one[key], other[key]
        if key == "required":
            both[key] = list(dict.fromkeys([*_list(mine), *_list(theirs)]))
        elif key == "properties":
            both[key] = _side_by_side(_table(mine), _table(theirs))
        elif key == "enum":
            both[key] = [value for value in _list(mine) if value in _list(theirs)]
        elif key == "const" and mine != theirs:
            both["enum"] = []
        elif key == "type":
            both[key] = _common(mine, theirs)
        elif key in LARGER_COUNTS or key in SMALLER_COUNTS:
            limits = [limit for limit in (_float(mine), _float(theirs)) if limit is not None]
            both[key] = (max if key in LARGER_COUNTS else min)(limits, default=None)
        elif key in ("items", "additionalProperties", "contains") and mine != theirs:
            both[key] = {"allOf": [mine, theirs]}
        elif key in ("anyOf", "oneOf", "allOf", "$ref") and mine != theirs:
            both["allOf"] = [*_list(both.get("allOf")), {key: mine}]
    return both


def _side_by_side(mine: Mapping[str, object], theirs: Mapping[str, object]) -> Mapping[str, object]:
    shared = {name: {"allOf": [mine[name], theirs[name]]} for name in mine.keys() & theirs.keys()}
    return {**mine, **theirs, **shared}


def _common(mine: object, theirs: object) -> list[str]:
    """The types that both lists allow; a whole number is a number, too."""
    one, other = (
        [str(each).lower() for each in ([named] if isinstance(named, str) else _list(named))]
        for named in (mine, theirs)
    )
    kinds = [kind for kind in one if kind in other or (kind == "integer" and "number" in other)]
    return kinds + [kind for kind in other if kind == "integer" and "number" in one and kind not in kinds]


def _table(value: object) -> Mapping[str, object]:
    return cast(Mapping[str, object], value) if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return cast(list[object], value) if isinstance(value, list) else []


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(value: object) -> int | None:
    """Gemini writes its counts as texts: "minItems": "2"."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
