"""A command from a dataclass whose fields are its options: commands share them, and a function takes one value, not sixteen."""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

__all__ = ["command_of"]

Options = TypeVar("Options")


def command_of(options: type[Options], run: Callable[[Options], None], name: str) -> Callable[..., None]:
    """A function for typer, with a parameter for each field of `options` (annotated as typer wants them) and the docstring of
    `run`."""

    def command(**values: Any) -> None:
        run(options(**values))

    hints = get_type_hints(options, include_extras=True)
    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(options)  # type: ignore[arg-type]
    ]
    command.__name__ = name
    command.__doc__ = run.__doc__
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    setattr(command, "__signature__", inspect.Signature(parameters))  # noqa: B010 -- no attribute of functions in general
    return command
