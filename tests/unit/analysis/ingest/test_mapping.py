"""`--map`: fields named by hand, in CSV, JSON lines and Parquet, and what is said of those that cannot be."""

import duckdb
import pytest

from hedgerow.analysis.ingest.mapping import MAP_NAMES, mapped_format
from hedgerow.errors import SettingError


@pytest.mark.parametrize(
    ("unit", "written"), [("", "0.5"), (":s", "0.5"), (":ms", "500"), (":us", "500000"), (":ns", "5e8")]
)
def test_a_time_has_a_unit(ingest, write, unit, written):
    read = ingest(write("a.csv", f"took,x\n{written},1\n"), maps=[f"total=took{unit}"])
    assert read.only()["total_s"] == 0.5


def test_every_name_fills_its_column(ingest, write):
    row = {
        "begun": "2026-11-01T10:00:00.100Z",
        "first": 520,
        "all": 3.81,
        "who": "openai",
        "what": {"model": "gpt-4o"},
        "usage": {"in": 812, "out": 143, "kept": 5},
        "usd": 0.0012,
        "code": 200,
        "streamed": "true",
        "trace": "t1",
        "plan": "pro",
    }
    maps = ["start=begun", "ttft=first:ms", "total=all", "provider=who", "model=what.model", "input=usage.in"]
    maps += ["output=usage.out", "cached=usage.kept", "cost=usd", "status=code", "stream=streamed", "trace=trace"]
    call = ingest(write("a.jsonl", [row]), maps=[*maps, "segment=plan"]).only()
    assert call.pop("t_start") == pytest.approx(1793527200.1)
    assert call == {
        "ttft_s": 0.52,
        "total_s": 3.81,
        "provider": "openai",
        "model": "gpt-4o",
        "input_tokens": 812,
        "output_tokens": 143,
        "cached_tokens": 5,
        "cost_usd": 0.0012,
        "ok": True,
        "stream": True,
        "trace_id": "t1",
        "segment": "pro",
    }


def test_the_whole_may_come_from_start_and_end_and_the_start_from_the_end(ingest, write):
    path = write("a.csv", "s,e,took\n1793527200100,1793527203910,3.81\n")
    assert ingest(path, maps=["start=s:ms", "end=e:ms"]).only()["total_s"] == pytest.approx(3.81)
    assert ingest(path, maps=["end=e", "total=took"]).only()["t_start"] == pytest.approx(1793527200.1)


def test_a_model_may_be_said_once_for_all(ingest, write):
    call = ingest(write("a.csv", "x,y\n1,2\n"), maps=["total=x", "model==gpt-4o", "provider== azure, east "]).only()
    assert (call["model"], call["provider"]) == ("gpt-4o", "azure, east")


@pytest.mark.parametrize(
    ("status", "ok"), [("200", True), ("204", True), ("429", False), ("success", True), ("Error", False), ("", True)]
)
def test_a_status_is_a_code_or_a_word(ingest, write, status, ok):
    read = ingest(write("a.csv", f"x,st\n1.5,{status}\n"), maps=["total=x", "status=st"])
    assert (read.column("ok"), read.column("total_s")) == ([ok], [1.5 if ok else None])


def test_what_was_found_in_a_cache_is_left_out(ingest, write):
    read = ingest(write("a.csv", "x,hit\n1.5,HIT\n1.5,miss\n"), maps=["total=x", "cache_hit=hit"])
    assert (len(read.calls), read.rejected) == (1, {"a cache hit": 1})


def test_it_works_on_parquet_with_nested_fields(ingest, tmp_path):
    path = tmp_path / "a.parquet"
    sql = "select {'lat': {'ms': 1500}} as m, timestamp '2026-11-01 10:00:00' as at"
    duckdb.execute(f"copy ({sql}) to '{path}' (format parquet)")
    read = ingest(str(path), maps=["total=m.lat.ms:ms", "start=at"])
    assert (read.only()["total_s"], read.only()["t_start"]) == (1.5, 1793527200.0)
    assert read.says("in 1 row", "start has no zone")


def test_names_with_colons_quotes_and_dots_are_names(ingest, write):
    path = write("a.csv", 'http:took,"a ""b""",it\'s\n1.5,m,p\n')
    call = ingest(path, maps=["total=http:took", 'model=a "b"', "provider=it's"]).only()
    assert (call["total_s"], call["model"], call["provider"]) == (1.5, "m", "p")
    assert ingest(write("b.jsonl", [{"it's": 2}]), maps=["total=it's"]).only()["total_s"] == 2


def test_a_file_without_a_mapped_field_is_not_read_and_its_fields_are_named(ingest, write, tmp_path):
    parquet = tmp_path / "c.parquet"
    duckdb.execute(f"copy (select 1 as p) to '{parquet}' (format parquet)")
    paths = [
        write("a.csv", "x,y\n1,2\n"),
        write("b.jsonl", [{"z": {"q": 1}}]),
        str(parquet),
        write("d.csv", "t,m\n1,2\n"),
    ]
    read = ingest(*paths, maps=["total=t", "model=m"])
    assert len(read.calls) == 1
    assert read.says("a.csv:1", "no field m, t", "it has x, y")
    assert read.says("b.jsonl", "no field m, t", "it has z.q")
    assert read.says("c.parquet", "it has p")


def test_a_mapped_field_may_be_missing_in_some_records(ingest, write):
    rows = [{"t": 1.5, "f": 0.5}, {"code": 500}, {"other": 1}]
    read = ingest(write("a.jsonl", rows), maps=["total=t", "ttft=f", "status=code"])
    assert read.column("ok") == [True, False]
    assert read.rejected == {"of no known format": 1}


def test_a_map_goes_before_what_would_be_found_out(ingest, write):
    read = ingest(write("a.csv", "ttft_s,total_s\n5,9000\n"), maps=["total=total_s:ms"])
    assert read.only() == {"total_s": 9.0, "provider": "", "model": "", "ok": True}


@pytest.mark.parametrize(
    ("maps", "parts"),
    [
        ([], ["--map", "at least total, ttft"]),
        (["model=m"], ["model=m", "at least total, ttft"]),
        (["start=s", "ttft"], ["'ttft'", "NAME=FIELD"]),
        (["total="], ["'total='", "NAME=FIELD"]),
        (["total=="], ["'total=='", "NAME=FIELD"]),
        (["latency=x"], ["'latency=x'", ", ".join(MAP_NAMES)]),
        (["total=x:min"], ["'total=x:min'", "s, ms, us, ns"]),
        (["total=x:SECONDS"], ["s, ms, us, ns"]),
        (["total=x", "total=y"], ["'total=y'", "each name once"]),
        (["total=x", "input=n:ms"], ["'input=n:ms'", "a unit for start, end, ttft, total", "--map input=n"]),
        (["total==5"], ["'total==5'", "a constant text for provider, model"]),
        (["start=s"], ["at least total"]),
        (["end=e", "model=m"], ["at least total"]),
    ],
)
def test_what_cannot_be_mapped_is_refused_with_the_fix(maps, parts):
    with pytest.raises(SettingError) as raised:
        mapped_format(maps)
    assert all(part in str(raised.value) for part in parts), str(raised.value)


def test_a_mapped_field_is_found_behind_hundreds_of_others(ingest, write):
    rows = [{f"k{number}": 1} for number in range(300)]
    read = ingest(write("a.jsonl", [*rows, {"t": 2.5}]), maps=["total=t"])
    assert (read.column("total_s"), read.rejected) == ([2.5], {"of no known format": 300})
