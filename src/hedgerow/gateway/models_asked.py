"""Which models a request may be answered by: all of them must fit its route. Not only the one that its dialect reads: a path
names one, too, and bodies name others to fall back on, in tools, in batches, or twice, of which one server takes the first and
the next the last."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

from hedgerow.dialects.gemini_paths import model_of
from hedgerow.dialects.lenient_json import is_array
from hedgerow.gateway.apis import Trouble
from hedgerow.gateway.client import Refused
from hedgerow.short_text import name_of
from hedgerow.values.request import WireRequest

__all__ = ["models_asked"]

OF_THE_PATH = re.compile(r"/(?:openai/deployments|engines)/([^/]+)/")  # there the body's is not looked at
OF_A_METHOD = re.compile(r"/([^/]+/[^/:]+):[A-Za-z]+$")  # Google's: KIND/NAME:METHOD
# Go's servers read names in any case. What is not a plain ASCII letter in JSON can still be one: \u006d.
NAMING = re.compile(rb'"(model|models|fallbacks|requests)"[ \t\r\n]*+:', re.IGNORECASE)
ESCAPED_LETTER = re.compile(rb"\\u00[4-7]", re.IGNORECASE)
LISTS, HOLDERS = ("models", "fallbacks"), ("tools", "requests")


class _Pairs(list[tuple[str, object]]):
    """A JSON object with all of its fields, those that come twice as well."""

    def named(self, *names: str) -> Iterator[object]:
        """The values of these fields, in whatever case they are written."""
        return (value for name, value in self if name.lower() in names)


def models_asked(wire: WireRequest, model: str | None) -> tuple[str, ...]:
    """Their names, the most telling one first. model: as the dialect read it. Raises Refused for a body that names several and
    cannot be read to its end."""
    names = [_in_path(wire), model, *(name_of(name) for name in _in_body(wire.body or b""))]
    return tuple(dict.fromkeys(name for name in names if name is not None))


def _in_path(wire: WireRequest) -> str | None:
    if found := OF_THE_PATH.search(wire.path):
        return name_of(unquote(found[1]))
    if wire.method == "POST" and (found := OF_A_METHOD.search(wire.path)):
        return model_of(wire) or name_of(unquote(found[1]))
    return None


def _in_body(body: bytes) -> Iterator[str]:
    told = NAMING.findall(body)
    if (not told or told == [b"model"]) and ESCAPED_LETTER.search(body) is None:
        return iter(())  # the usual case: the dialect has read it
    try:
        found = json.loads(
            body.decode("utf-8", "replace"), object_pairs_hook=_Pairs, parse_int=_no_number, parse_float=_no_number
        )
    except RecursionError:
        trouble = Trouble(
            400, "this request is refused: its body names several models and is nested too deeply", "bad_body"
        )
        raise Refused(trouble) from None
    except ValueError:  # not JSON: no dialect reads a model in it either
        return iter(())
    return _of_object(found) if isinstance(found, _Pairs) else iter(())


def _of_object(body: _Pairs) -> Iterator[str]:
    yield from _names(body.named("model"))
    for value in body.named(*LISTS):
        yield from _of_list(value)
    for value in body.named(*HOLDERS):
        for each in _objects(value):
            yield from _names(each.named("model"))
            for inner in each.named("params"):
                yield from _names(inner.named("model") if isinstance(inner, _Pairs) else ())


def _of_list(value: object) -> Iterator[str]:
    """Names, objects that name one, or lists by the name of what they stand in for."""
    for each in [value] if isinstance(value, str | _Pairs) else value if is_array(value) else []:
        if isinstance(each, str):
            yield _plain(each)
        elif isinstance(each, _Pairs):
            yield from _names(each.named("model"))
            for _, inner in each:
                yield from _names(inner if is_array(inner) else ())


def _objects(value: object) -> Sequence[_Pairs]:
    return [each for each in value if isinstance(each, _Pairs)] if is_array(value) else []


def _names(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str) and value:
            yield _plain(value)


def _plain(name: str) -> str:
    """Google's bodies call them by their whole names."""
    return name.removeprefix("models/")


def _no_number(_: str) -> None:
    """Numbers may be longer than Python reads."""
