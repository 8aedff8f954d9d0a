"""Whatever stands in whatever field of an event, and in whatever store: what is before and after it is written."""

import logging
import math
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hedgerow.record import batches, jsonl_store
from hedgerow.record.batches import BatchWriter
from hedgerow.record.jsonl_store import JsonlStore
from hedgerow.record.memory import MemoryStore
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.values.event import AttemptEvent, Event

AT = datetime(2026, 11, 1, 10, 0, 0, 123000, UTC)
NESTED: list[Any] = []
for _ in range(2000):
    NESTED = [NESTED]
ODD: dict[str, object] = {
    "a number over 64 bits": 2**70,
    "one below": -(2**70),
    "one of 5000 digits": 10**5000,
    "nan": math.nan,
    "infinity": -math.inf,
    "half a character": "a\ud800b",
    "NUL": "a\x00b",
    "line breaks": "a\r\nb\u2028c",
    "a megabyte": "x" * 1_000_000,
    "nothing": None,
    "truth": True,
    "bytes": b"\xff\x00",
    "a set": {1},
    "a table": {1: 2},
    "a list": ["a"],
    "lists in one another": NESTED,
    "an object": object(),
    "a class": int,
}
STORES: dict[str, Callable[[Path], Any]] = {
    "sqlite": lambda folder: SqliteStore(folder / "e.db"),
    "jsonl": lambda folder: JsonlStore(folder / "e.jsonl"),
    "memory": lambda _: MemoryStore(),
}
on_disk = pytest.mark.parametrize("kind", ["sqlite", "jsonl"])


def event(number: int = 0, **values: Any) -> Event:
    attempts = (AttemptEvent(attempt=0, target="a"), AttemptEvent(attempt=1, target="b"))
    told: dict[str, Any] = {"id": f"id-{number}", "at": AT, "dialect": "openai_chat", "outcome": "answered"}
    return Event(**{**told, "attempts": attempts, **values})


def odd_events() -> list[Event]:
    """Each odd value in each field of a request and of an attempt."""
    found = [event(id=f"odd {name} {what}", **{name: odd}) for name in _names(Event, "id") for what, odd in ODD.items()]
    found += [event(id=odd) for odd in ODD.values()]
    for name in _names(AttemptEvent):
        for what, odd in ODD.items():
            told = {"attempt": 0, "target": "a", name: odd}
            found.append(event(id=f"odd attempt {name} {what}", attempts=(AttemptEvent(**told),)))
    return [*found, *(event(id=f"odd {what}", attempts=(odd,)) for what, odd in ODD.items())]


def _names(kind: type, *but: str) -> list[str]:
    return [field.name for field in fields(kind) if field.name not in but]


@pytest.mark.parametrize("kind", STORES)
def test_no_odd_value_in_any_field_stops_the_others(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = STORES[kind](tmp_path)
    everything = [part for number, odd in enumerate(odd_events()) for part in (odd, event(number))]
    for each in (*everything, "no event", None, 5):
        store.append(each)
    if kind == "memory":
        assert len(store) == len(everything) + 3
        return
    assert store.flush()
    store.append(event(-1))
    assert store.flush()
    there = [each.id for each in store if isinstance(each.id, str)]
    assert {f"id-{number}" for number in range(-1, len(everything) // 2)} <= set(there)
    assert store.unwritable > 100
    store.close()
    said = [record.getMessage() for record in caplog.records if "were dropped" in record.getMessage()]
    assert f"{store.unwritable:,} so far" in said[-1]
    assert not any(quoted in caplog.text for quoted in ("half a character", "\ud800", "xxxx", "odd attempt"))


@on_disk
@pytest.mark.parametrize("place", [0, 1, 498, 999])
def test_an_odd_one_is_found_wherever_it_stands_in_a_batch_and_is_dropped_alone(
    kind: str, place: int, tmp_path: Path
) -> None:
    store = STORES[kind](tmp_path)
    for number in range(1000):
        store.append(event(number, **({"max_output_tokens": 2**70} if number == place else {})))
    store.close()
    assert [each.id for each in STORES[kind](tmp_path)] == sorted(
        (f"id-{number}" for number in range(1000) if number != place),
        key=None if kind == "sqlite" else lambda name: int(name[3:]),
    )
    assert store.unwritable == 1


@on_disk
def test_when_all_are_odd_none_is_written_and_the_next_one_is(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path)
    for number in range(200):
        store.append(event(number, segment={1}))
    store.append(event(200))
    store.close()
    assert [each.id for each in STORES[kind](tmp_path)] == ["id-200"]
    assert store.unwritable == 200


def test_a_disk_that_fills_up_between_two_halves_leaves_no_event_twice() -> None:
    written: list[object] = []
    full = threading.Event()

    def write(batch: Sequence[object]) -> None:
        if "odd" in batch:
            raise ValueError("odd")
        if full.is_set():
            raise OSError("the disk is full")
        written.extend(batch)
        full.set()

    writer = BatchWriter[object]("halves", write, lambda: None)
    items: list[object] = [0, 1, "odd", 3]
    writer._waiting.extend(items)
    assert writer._written(items) == 3  # two of them written, one dropped, one waits
    assert (written, writer.unwritable) == ([0, 1], 1)


def test_a_log_is_not_filled_by_whoever_sends_odd_requests(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter([0.0, 1.0, 2.0, 59.0, 61.0, 62.0])
    monkeypatch.setattr(batches, "time", SimpleNamespace(monotonic=lambda: next(moments)))

    def write(_: Sequence[int]) -> None:
        raise TypeError("a secret")

    writer = BatchWriter[int]("odd", write, lambda: None)
    for number in range(6):
        writer._written([number])
        writer._tell_of_odd_ones(at_once=number == 5)
    assert [record.getMessage() for record in caplog.records] == [
        "odd: 1 could not be written and were dropped, 1 so far (TypeError)",
        "odd: 4 could not be written and were dropped, 5 so far (TypeError)",
        "odd: 1 could not be written and were dropped, 6 so far (TypeError)",
    ]


def test_a_writer_whose_thread_met_with_an_accident_gets_another() -> None:
    written: list[int] = []

    class Accident(BaseException):
        pass

    def write(batch: Sequence[int]) -> None:
        if not written and batch == [1]:
            written.append(0)
            raise Accident
        written.extend(batch)

    was, threading.excepthook = threading.excepthook, lambda _: None
    try:
        writer = BatchWriter[int]("accident", write, lambda: None)
        writer.append(1)
        assert writer._thread is not None
        writer._thread.join(60)
    finally:
        threading.excepthook = was
    writer.append(2)
    writer.close()
    assert written == [0, 1, 2]


@pytest.mark.skipif(sys.platform == "win32", reason="the owner's bits are POSIX's")
@on_disk
def test_only_the_owner_may_read_what_a_store_makes(kind: str, tmp_path: Path) -> None:
    store = STORES[kind](tmp_path)
    store.append(event())
    assert store.flush()
    made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert set(made.values()) == {0o600}
    assert len(made) == (3 if kind == "sqlite" else 1)
    store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
@pytest.mark.parametrize("gone", ["", "-wal", "-shm", "all", "renamed", "replaced", "emptied"])
def test_a_sqlite_file_that_goes_while_it_is_open_is_made_anew(
    gone: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, other = tmp_path / "e.db", tmp_path / "other.db"
    store = SqliteStore(path)
    store.append(event(1))
    assert store.flush()
    if gone in ("", "-wal", "-shm"):
        Path(f"{path}{gone}").unlink()
    elif gone == "all":
        for each in tmp_path.glob("e.db*"):
            each.unlink()
    elif gone == "renamed":
        path.rename(other)
    elif gone == "replaced":
        there = SqliteStore(other)
        there.append(event(7))
        there.close()
        other.replace(path)
    else:
        with sqlite3.connect(path) as base:
            base.execute("drop table requests")
            base.execute("drop table attempts")
        base.close()
    store.append(event(2))
    give_up_s = time.monotonic() + 60
    while not store.flush():
        assert time.monotonic() < give_up_s
    store.append(event(3))
    store.close()
    ids = [each.id for each in SqliteStore(path)]
    assert ids[-2:] == ["id-2", "id-3"] or ids == ["id-2", "id-3", "id-7"]
    assert "e.db" in caplog.text
    assert path.stat().st_mode & 0o077 == 0 or gone == "replaced"
    if gone == "renamed":
        assert "id-1" in [each.id for each in SqliteStore(other)]
    if gone in ("-wal", "-shm"):
        assert "id-1" in ids


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted there")
def test_a_folder_that_goes_is_said_and_what_waits_is_written_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "in").mkdir()
    stores = [SqliteStore(tmp_path / "in" / "e.db"), JsonlStore(tmp_path / "in" / "e.jsonl")]
    for store in stores:
        store.append(event(1))
        assert store.flush()
    (tmp_path / "in").rename(tmp_path / "away")
    for store in stores:
        store.append(event(2))
        assert not store.flush()
    assert caplog.text.count("cannot be written; they wait") == 2
    (tmp_path / "in").mkdir()
    for store in stores:
        give_up_s = time.monotonic() + 60
        while not store.flush():
            assert time.monotonic() < give_up_s
        assert [each.id for each in store] == ["id-2"]
        store.close()


def test_a_jsonl_file_that_is_deleted_is_made_anew_for_its_owner(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "e.jsonl")
    store.append(event(1))
    assert store.flush()
    (tmp_path / "e.jsonl").unlink()
    store.append(event(2))
    store.close()
    assert [each.id for each in store] == ["id-2"]
    assert (tmp_path / "e.jsonl").stat().st_mode & 0o077 == 0 or sys.platform == "win32"


@pytest.mark.parametrize(
    "foreign", [b'{"id":"cut', b'{"id":"cut\n', b"[]\n", b"5\n", b'{"id":1}\n', b"\xff\n", b'{"at":5}\n']
)
def test_a_line_of_somebody_elses_is_left_out_and_what_follows_is_read(
    foreign: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(foreign)
    store = JsonlStore(path)
    store.append(event(1))
    store.close()
    assert [each.id for each in JsonlStore(path)] == ["id-1"]
    assert "1 lines cannot be read" in caplog.text


def test_a_row_of_somebody_elses_is_left_out_and_the_others_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path / "e.db")
    store.append(event(1))
    store.close()
    with sqlite3.connect(tmp_path / "e.db") as base:
        base.execute("insert into requests (id, at) values ('other', 'yesterday'), ('none', null)")
    base.close()
    assert [each.id for each in SqliteStore(tmp_path / "e.db")] == ["id-1"]
    assert "2 cannot be read" in caplog.text


def test_what_is_too_long_for_one_write_goes_in_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl_store, "MOST_BYTES", 5_000)
    store = JsonlStore(tmp_path / "e.jsonl")
    for number in range(100):
        store.append(event(number))
    store.append(event(100, model="m" * 5_000))
    store.close()
    assert len(list(store)) == 100
    assert store.unwritable == 1


def test_a_file_called_memory_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(":memory:")
    store.append(event(1))
    store.close()
    assert [each.id for each in store] == ["id-1"]


def test_old_events_that_cannot_be_deleted_do_not_have_new_ones_written_twice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SqliteStore(tmp_path / "e.db", keep_s=60.0)
    with sqlite3.connect(tmp_path / "e.db") as base:
        refuse = "create trigger no before delete on requests begin select raise(abort, 'kept'); end"
        base.execute(refuse)
    base.close()
    store.append(replace(event(1), at=AT))
    store.append(event(2))
    store.close()
    assert [len(each.attempts) for each in store] == [2, 2]
    assert "could not be deleted" in caplog.text
    assert all(record.levelno <= logging.WARNING for record in caplog.records)
