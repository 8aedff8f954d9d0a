"""Events as rows of two tables, `requests` and `attempts`, joined by `id`; and rows as events again."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
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
MOMENT = list(REQUEST_COLUMNS).index("at")
TRUTHS = tuple(place for place, name in enumerate(REQUEST_COLUMNS) if name in FLAGS)
# Every event goes through these: one by one its values take three times as long.
_of_request = attrgetter(*REQUEST_COLUMNS)
_of_attempt = attrgetter(*list(ATTEMPT_COLUMNS)[1:])


def request_row(event: Event) -> list[object]:
    """The request's values, in the order of REQUEST_COLUMNS."""
    row: list[object] = list(_of_request(event))
    row[MOMENT] = event.at.isoformat()
    for place in TRUTHS:
        row[place] = int(bool(row[place]))
    return row


def attempt_rows(event: Event) -> list[list[object]]:
    """One row for each attempt, in the order of ATTEMPT_COLUMNS."""
    return [[event.id, *_of_attempt(attempt)] for attempt in event.attempts]


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
