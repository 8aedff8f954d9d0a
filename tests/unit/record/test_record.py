"""Ids, the memory store, and a recorder whose receivers fail."""

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from hedgerow.errors import SettingError
from hedgerow.record.ids import uuid7
from hedgerow.record.memory import MemoryStore
from hedgerow.record.recorder import Recorder
from hedgerow.values.event import AttemptEvent, Event

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def event(**fields: object) -> Event:
    return Event(**{"id": uuid7(NOON), "at": NOON, "dialect": "openai_chat", "outcome": "answered", **fields})  # type: ignore[arg-type]


def test_ids_are_version_seven_and_sort_by_time() -> None:
    ids = [uuid7(NOON + timedelta(milliseconds=n)) for n in range(50)]
    assert ids == sorted(ids)
    assert len({uuid7(NOON) for _ in range(1000)}) == 1000
    parsed = uuid.UUID(ids[0])
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == int(NOON.timestamp() * 1000)


def test_the_memory_store_keeps_the_last_events() -> None:
    store = MemoryStore(most=2)
    events = [event() for _ in range(3)]
    for each in events:
        store.append(each)
    assert list(store) == events[1:]
    with pytest.raises(SettingError):
        MemoryStore(most=0)


def test_an_event_is_json_with_nested_attempts() -> None:
    fields = json.loads(json.dumps(event(attempts=(AttemptEvent(attempt=0, target="t"),)).as_dict()))
    assert fields["at"] == "2026-11-29T12:00:00+00:00"
    assert fields["attempts"][0]["target"] == "t"
    assert fields["v"] == 1


def test_a_full_disk_loses_events_but_no_call_and_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    class FullDisk:
        def __iter__(self) -> Iterator[Event]:
            raise OSError("no disk")

        def append(self, _: Event) -> None:
            raise OSError("no space left")

        def close(self) -> None:
            raise OSError("no space left")

    recorder, seen = Recorder(FullDisk()), []
    recorder.subscribe(seen.append)
    for _ in range(5):
        recorder.record(event())
    recorder.close()
    assert len(seen) == 5
    assert recorder.troubles == 6
    assert len(caplog.records) == 2
