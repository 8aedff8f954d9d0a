"""What a request says of its tools, whichever API it speaks: which may be called, which must be, what their arguments are like.

A forced tool is called even if no script says so, as the provider would.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from hedgerow.sandbox.http1 import BadRequest

__all__ = ["Choice", "Tool", "callable_tools", "objects", "table", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool that the request declared; `schema` None or empty: it takes whatever comes."""

    name: str
    schema: dict[str, object] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The request's say in which tools are called. `names` empty: any of them; `forced`: at least one must be."""

    forced: bool = False
    names: tuple[str, ...] = ()


def tool(declared: dict[str, object], *keys: str) -> Tool | None:
    """The tool that an object declares, its schema under the first of `keys` that is there; None without a name."""
    name = declared.get("name")
    schema = next((declared[key] for key in keys if isinstance(declared.get(key), dict)), None)
    return Tool(name=name, schema=cast(dict[str, object] | None, schema)) if isinstance(name, str) else None


def callable_tools(declared: Iterable[Tool | None], choice: Choice) -> tuple[Tool, ...]:
    """The tools that may be called. Raises BadRequest if the choice names one that was not declared."""
    tools = {each.name: each for each in declared if each is not None}
    for name in choice.names:
        if name not in tools:
            raise BadRequest(f"Tool choice {name!r} not found in 'tools' parameter.")
    if choice.forced and not tools:
        raise BadRequest("'tool_choice' is only allowed when 'tools' are specified.")
    return tuple(tools[name] for name in choice.names or tools)


def objects(value: object) -> Sequence[dict[str, object]]:
    """The objects of a JSON list; none if it is no list."""
    items = cast(list[object], value) if isinstance(value, list) else []
    return [cast(dict[str, object], item) for item in items if isinstance(item, dict)]


def table(value: object) -> dict[str, object]:
    """A JSON object; an empty one if it is none."""
    return cast(dict[str, object], value) if isinstance(value, dict) else {}
