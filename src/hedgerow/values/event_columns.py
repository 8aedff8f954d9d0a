"""Events as rows of two tables, `requests` and `attempts`, joined by `id`; and rows as events again."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, cast

from hedgerow.values.event import AttemptEvent, Event

__all__ = ["ATTEMPT_COLUMNS", "FLAGS", "REQUEST_COLUMNS", "attempt_rows", "event_of_rows", "request_row"]

# Column → SQL type. Truth values are 0 or 1, moments ISO 8601 in UTC.
TYPES = {"str": "text", "int": "integer", "float": "real", "bool": "integer", "datetime": "text"}


def _columns(kind: type) -> dict[str, str]:
    named = {field.name: str(field.type).removeprefix("<class '").removesuffix("'>") for field in fields(kind)}
    plain = {name: spelt.split(" | ")[0].rpartition(".")[2] for name, spelt in named.items()}
    return {name: TYPES[spelt] for name, spelt in plain.items() if spelt in TYPES}


REQUEST_COLUMNS = _columns(Event)
ATTEMPT_COLUMNS = {"id": "text", **_columns(AttemptEvent)}
FLAGS = frozenset(field.name for field in fields(Event) if str(field.type) in ("bool", "<class 'bool'>"))


def request_row(event: Event) -> list[object]:
    """The request's values, in the order of REQUEST_COLUMNS."""
    return [
        event.at.isoformat()
        if name == "at"
        else int(value)
        if isinstance(value := getattr(event, name), bool)
        else value
        for name in REQUEST_COLUMNS
    ]


def attempt_rows(event: Event) -> list[list[object]]:
    """One row for each attempt, in the order of ATTEMPT_COLUMNS."""
    names = list(ATTEMPT_COLUMNS)[1:]
    return [[event.id, *(getattr(attempt, name) for name in names)] for attempt in event.attempts]


def event_of_rows(request: Mapping[str, object], attempts: Sequence[Mapping[str, object]]) -> Event:
    """An event from its rows. Columns of a later version are ignored; what an older one lacks has its default."""
    known: dict[str, Any] = {name: request[name] for name in REQUEST_COLUMNS if name in request}
    known["at"] = datetime.fromisoformat(cast(str, known["at"]))
    known.update({name: bool(known[name]) for name in FLAGS if name in known})
    return Event(
        **known,
        attempts=tuple(
            AttemptEvent(
                **cast(dict[str, Any], {name: row[name] for name in ATTEMPT_COLUMNS if name in row and name != "id"})
            )
            for row in attempts
        ),
    )
