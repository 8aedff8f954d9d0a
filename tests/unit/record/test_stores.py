"""Stores on disk: what is written comes back, from several processes, after kill -9, and a full disk harms no call."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from hedgerow.errors import SettingError
from hedgerow.record.batches import BatchWriter
from hedgerow.record.ids import uuid7
from hedgerow.record.jsonl_store import JsonlStore
from hedgerow.record.memory import MemoryStore
from hedgerow.record.sqlite_store import SqliteStore
from hedgerow.record.store_urls import store_of
from hedgerow.values.event import AttemptEvent, Event

AT = datetime(2026, 11, 1, 10, 0, 0, 123000, UTC)


def event(number: int = 0, *, at: datetime = AT, attempts: int = 2) -> Event:
    moment = at + timedelta(milliseconds=number)
    return Event(
        id=uuid7(moment),
        at=moment,
        dialect="openai",
        model="gpt-5.6-mini",
        stream=True,
        segment="pro",
        outcome="answered",
        winner=attempts - 1,
        full_response_s=1.25 + number,
        cost_low_usd=0.0012,
        attempts=tuple(
            AttemptEvent(attempt=k, target="a", outcome="won" if k == attempts - 1 else "lost", first_token_s=0.5)
            for k in range(attempts)
        ),
    )


STORES: list[Callable[[Path], Any]] = [lambda p: SqliteStore(p / "e.db"), lambda p: JsonlStore(p / "e.jsonl")]
on_disk = pytest.mark.parametrize("make", STORES, ids=["sqlite", "jsonl"])


@on_disk
def test_what_is_written_comes_back_in_order(make: Callable[[Path], Any], tmp_path: Path) -> None:
    store, events = make(tmp_path), [event(number) for number in range(50)]
    for each in events:
        store.append(each)
    assert list(store) == events
    store.close()
    assert list(make(tmp_path)) == events


@on_disk
def test_many_threads_may_append(make: Callable[[Path], Any], tmp_path: Path) -> None:
    store = make(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.append(event(number)), range(400)))
    store.close()
    assert sorted(each.full_response_s for each in make(tmp_path)) == [1.25 + number for number in range(400)]


@on_disk
def test_after_close_nothing_more_is_kept_and_closing_again_is_harmless(
    make: Callable[[Path], Any], tmp_path: Path
) -> None:
    store = make(tmp_path)
    store.append(event())
    store.close()
    store.close()
    store.append(event(1))
    assert len(list(make(tmp_path))) == 1


WRITER = """
import sys
sys.path.insert(0, {tests!r})
from test_stores import event
from hedgerow.record.store_urls import store_of
store = store_of(sys.argv[1])
for number in range(int(sys.argv[2])):
    store.append(event(number))
    if number == 200:
        assert store.flush()
        print("written", flush=True)
    if number > 200:
        import time; time.sleep(0.0005)
store.close()
"""


def writer(address: str, count: int) -> subprocess.Popen[str]:
    script = WRITER.format(tests=str(Path(__file__).parent))
    return subprocess.Popen([sys.executable, "-c", script, address, str(count)], stdout=subprocess.PIPE, text=True)


def address(kind: str, folder: Path) -> str:
    return f"{kind}:///{folder}/e.{'db' if kind == 'sqlite' else 'jsonl'}"


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_several_processes_write_one_file(kind: str, tmp_path: Path) -> None:
    writers = [writer(address(kind, tmp_path), 300) for _ in range(3)]
    for each in writers:
        each.communicate(timeout=240)
    assert [each.returncode for each in writers] == [0, 0, 0]
    assert len(list(store_of(address(kind, tmp_path)))) == 900


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 on this system")
@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_killed_process_loses_at_most_its_last_batch_and_tears_nothing(kind: str, tmp_path: Path) -> None:
    process = writer(address(kind, tmp_path), 1_000_000)
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    time.sleep(0.3)
    process.kill()
    process.wait()
    process.stdout.close()
    found = list(store_of(address(kind, tmp_path)))
    assert len(found) >= 201
    assert all(len(each.attempts) == 2 for each in found)
    if kind == "sqlite":
        base = sqlite3.connect(tmp_path / "e.db")
        assert base.execute("pragma integrity_check").fetchall() == [("ok",)]
        orphans = "select count(*) from attempts where id not in (select id from requests)"
        assert base.execute(orphans).fetchall() == [(0,)]
        base.close()


def test_a_full_disk_is_said_survived_and_made_good(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = SqliteStore(tmp_path / "e.db")
    store.append(event())
    assert store.flush()
    assert store._table._base is not None
    _, base = store._table._base
    (pages,) = base.execute("pragma page_count").fetchone()
    base.execute(f"pragma max_page_count = {pages}")  # SQLite's own "database or disk is full"
    for number in range(1, 400):
        store.append(event(number))
    assert not store.flush()
    assert "full" in caplog.text
    assert len(caplog.records) == 1
    base.execute("pragma max_page_count = 1000000")
    give_up_s = time.monotonic() + 20
    while not store.flush():
        assert time.monotonic() < give_up_s
    assert len(list(store)) == 400
    store.close()


def test_old_events_go_when_they_are_to_be_kept_a_while_only(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "e.db", keep_s=3600.0)
    now = datetime.now(UTC)
    store.append(event(0, at=now - timedelta(hours=2)))
    store.append(event(0, at=now))
    store.close()
    (kept,) = SqliteStore(tmp_path / "e.db")
    assert kept.at > now - timedelta(hours=1)
    base = sqlite3.connect(tmp_path / "e.db")
    assert base.execute("select count(*) from attempts").fetchall() == [(2,)]
    base.close()


def test_a_file_of_an_older_version_gets_the_columns_it_lacks(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "e.db")
    base.execute("create table requests (id text primary key, at text, dialect text, outcome text)")
    base.execute("insert into requests values ('old', '2026-01-01T00:00:00+00:00', 'openai', 'answered')")
    base.commit()
    base.close()
    store = SqliteStore(tmp_path / "e.db")
    store.append(event())
    old, new = list(store)
    assert (old.id, old.segment, old.attempts) == ("old", None, ())
    assert new.segment == "pro"
    store.close()


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "e.jsonl")
    store.append(event())
    store.close()
    with (tmp_path / "e.jsonl").open("ab") as file:
        file.write(b'{"v":1,"id":"cu')
    assert len(list(JsonlStore(tmp_path / "e.jsonl"))) == 1


def test_lines_nest_the_attempts(tmp_path: Path) -> None:
    store = JsonlStore(tmp_path / "e.jsonl")
    store.append(event())
    store.close()
    record = orjson.loads((tmp_path / "e.jsonl").read_bytes())
    assert [attempt["outcome"] for attempt in record["attempts"]] == ["lost", "won"]


@on_disk
def test_threads_that_append_at_the_same_moment_start_one_writer(
    make: Callable[[Path], Any], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    usual_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    request.addfinalizer(lambda: sys.setswitchinterval(usual_s))
    stores = [make(tmp_path / str(number)) for number in range(30) if (tmp_path / str(number)).mkdir() is None]
    with ThreadPoolExecutor(8) as pool:
        for store in stores:
            together = threading.Barrier(8)
            list(pool.map(lambda number, s=store, b=together: (b.wait(), s.append(event(number))), range(8)))  # type: ignore[misc]
    for store in stores:
        store.close()
        assert len(list(store)) == 8
        assert sum(len(each.attempts) for each in store) == 16


def test_what_cannot_be_written_is_tried_again_now_and_then_not_without_pause() -> None:
    tries: list[int] = []

    def write(batch: Sequence[Event]) -> None:
        tries.append(len(batch))
        raise OSError("the disk is full")

    writer = BatchWriter("tried", write, lambda: None)
    for number in range(3000):
        writer.append(event(number))
    give_up_s = time.monotonic() + 20
    while len(tries) < 3:
        assert time.monotonic() < give_up_s
        time.sleep(0.01)
    before_s, before = time.monotonic(), len(tries)
    while time.monotonic() < before_s + 0.6:
        time.sleep(0.01)
    assert len(tries) - before <= 10  # thousands if it did not pause
    writer.close()


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_program_that_ends_without_closing_loses_nothing(kind: str, tmp_path: Path) -> None:
    script = WRITER.format(tests=str(Path(__file__).parent)).replace("store.close()", "")
    subprocess.run([sys.executable, "-c", script, address(kind, tmp_path), "250"], check=True, capture_output=True)
    assert len(list(store_of(address(kind, tmp_path)))) == 250


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_writes_with_a_thread_and_a_connection_of_its_own(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "e.db")
    store.append(event())
    assert store.flush()
    pid = os.fork()
    if pid == 0:
        try:
            inherited = store._table._base
            store.append(replace(event(1), id="child"))
            written = store.flush()
            os._exit(0 if written and store._table._base != inherited else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    assert "child" in {each.id for each in store}
    store.close()


def test_addresses_name_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = store_of("sqlite:///here.db")
    assert isinstance(here, SqliteStore)
    assert (tmp_path / "here.db").is_file()
    assert isinstance(store_of(f"jsonl:///{tmp_path}/x.jsonl"), JsonlStore)
    assert isinstance(store_of("memory:"), MemoryStore)
    assert isinstance(store_of(None), MemoryStore)


@pytest.mark.parametrize(
    "events",
    ["mysql://x/y", "sqlite://host/x.db", "sqlite:///", "jsonl:///x?keep=30d", "sqlite:///x.db?kep=1d", 7, object()],
)
def test_what_is_no_store_is_refused_with_what_is(events: object) -> None:
    with pytest.raises(SettingError, match=r"sqlite:///hedgerow\.db"):
        store_of(events)


@pytest.mark.parametrize("events", ["sqlite:///no/such/folder/x.db", "jsonl:///no/such/folder/x.jsonl"])
def test_a_file_that_cannot_be_written_is_said_at_once(events: str) -> None:
    with pytest.raises(SettingError, match="no/such/folder"):
        store_of(events)
