"""CSV and Parquet as they really are: what is broken costs the rows it spoils, and is told with file and line."""

import gzip

import duckdb
import pytest

from hedgerow.analysis.ingest.tables import csv_head

HEAD = "provider,model,ttft_s,total_s,status\n"


def log(*rows: str, head: str = HEAD, end: str = "\n") -> str:
    return (head.strip() + "\n" + "\n".join(rows) + "\n").replace("\n", end)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_delimiters_line_ends_and_a_byte_order_mark(ingest, write, delimiter, end, mark):
    text = mark + log("p,m,0.5,2.5,200", "p,m,0.6,2.6,500", end=end).replace(",", delimiter)
    read = ingest(write("a.csv", text))
    assert (read.column("total_s"), read.column("ok"), read.messages) == ([2.5, None], [True, False], [])


def test_rows_of_the_wrong_width_are_left_out_by_line(ingest, write):
    read = ingest(write("a.csv", log("p,m,0.5,2.5,200", "p,m,0.5", "p,m,0.5,2.5,200,7", "p,m,0.6,2.6,200")))
    assert read.column("total_s") == [2.5, 2.6]
    assert read.messages == ["2 rows left out, not as many fields as the head (first at a.csv:3, a.csv:4)"]


def test_a_row_that_is_not_utf8_is_left_out(ingest, write):
    content = log("p,m,0.5,2.5,200", "p,BAD,0.5,2.5,200", "p,m,0.6,2.6,200").encode().replace(b"BAD", b"\xff\xfe")
    read = ingest(write("a.csv", content))
    assert read.column("total_s") == [2.5, 2.6]
    assert read.messages == ["1 row left out, not UTF-8 (first at a.csv:3)"]


def test_a_row_with_a_nul_is_left_out(ingest, write):
    read = ingest(write("a.csv", log("p,m,0.5,2.5,200", "p,m\0,0.5,2.5,200", "p,m,0.6,2.6,200")))
    assert read.column("total_s") == [2.5, 2.6]
    assert read.messages == ["1 row left out, a NUL in its text (first at a.csv:3)"]


def test_lines_are_told_right_after_quoted_line_ends_empty_lines_and_rows_left_out(ingest, write):
    rows = ['p,"m\nn",0.5,2.5,200', "", "p,m,0.5", "p,m,-1,2.5,200", 'p,"m"",""",0.6,2.6,200', "p,m,0.7,-2,200"]
    read = ingest(write("a.csv", log(*rows)))
    assert read.column("model") == ["m\nn", 'm","']
    assert "2 rows left out, a time below zero (first at a.csv:6, a.csv:8)" in read.messages
    assert "1 row left out, not as many fields as the head (first at a.csv:5)" in read.messages


def test_mixed_line_ends_are_read_with_a_word_of_warning(ingest, write):
    read = ingest(write("a.csv", HEAD + "p,m,0.5,2.5,200\r\np,m,0.6,2.6,200\n"))
    assert read.column("total_s") == [2.5, 2.6]
    assert read.says("a.csv", "no regular CSV")


@pytest.mark.parametrize("nothing", ["", "-", "NaN", "nan", "inf", "-inf", "null", "None", "n/a"])
def test_what_is_no_finite_number_is_not_known(ingest, write, nothing):
    read = ingest(write("a.csv", log(f"p,m,{nothing},2.5,200", f"p,m,{nothing},{nothing},200")))
    assert (read.column("ttft_s"), read.rejected) == ([None], {"without any time": 1})


def test_times_that_cannot_be_are_left_out_by_reason(ingest, write):
    rows = ["p,m,-1,2,200", "p,m,3,2,200", "p,m,0,0,200", "p,m,,,200", "p,m,0,0,500", "p,m,0.5,2,200"]
    read = ingest(write("a.csv", log(*rows)))
    assert read.column("total_s") == [None, 2.0]
    assert read.rejected == {
        "a time below zero": 1,
        "a first token after the end": 1,
        "answered in no time": 1,
        "without any time": 1,
    }


def test_columns_that_come_twice_matter_only_if_they_are_read(ingest, write):
    harmless = write("a.csv", "note,note,total_s,\n1,2,2.5,x\n")
    unclear = write("b.csv", "total_s,x,TOTAL_S\n1,2,2.5\n")
    read = ingest(harmless, unclear)
    assert read.column("total_s") == [2.5]
    assert read.messages == ["b.csv:1: two columns are called total_s: which one counts is not clear"]


def test_a_head_without_names_gets_some():
    assert csv_head("a,,b,a,A").names == ("a", "column2", "b", "a (2)", "A (3)")


def test_an_unknown_head_is_told_with_its_fields_and_the_way_out(ingest, write):
    read = ingest(write("a.csv", "x,y\n1,2\n"))
    assert read.messages == ["a.csv:1: of no known format; say what its fields mean with --map (it has x, y)"]


def test_a_cut_gzip_is_read_as_far_as_it_goes(ingest, write):
    content = gzip.compress(log(*(f"p,m{number},0.5,{number / 7 + 1},200" for number in range(20_000))).encode())
    read = ingest(write("a.csv.gz", content[: len(content) // 2]), write("b.csv", log("p,m,0.5,2.5,200")))
    assert 2_000 < len(read.calls) < 18_000
    assert read.calls[-1]["total_s"] == 2.5
    assert read.says("a.csv.gz:", "breaks off here", "what came before is used")


def test_a_gzip_is_known_by_its_content_not_by_its_name(ingest, write):
    assert len(ingest(write("a.log", gzip.compress(log("p,m,0.5,2.5,200").encode()))).calls) == 1


def test_the_last_row_of_a_cut_gzip_is_not_half_read(ingest, write):
    content = gzip.compress(log("p,m,0.5,2.5,200", "p,m,0.5,2.75,200", head="provider,model,ttft_s,total_s,x").encode())
    for cut in range(9, len(content) - 30, 5):
        read = ingest(write("a.csv.gz", content[:-cut]))
        assert set(read.column("total_s")) <= {2.5, 2.75}


def test_an_open_quote_is_told(ingest, write):
    read = ingest(write("a.csv", log("p,m,0.5,2.5,200", 'p,"m,0.5,2.5,200', "p,m,0.6,2.6,200")))
    assert read.column("total_s") == [2.5]
    assert read.says("1 row left out, quotes that do not match", "a.csv:3")


def test_parquet_has_its_own_types(ingest, tmp_path):
    path = tmp_path / "a.parquet"
    sql = (
        "select timestamptz '2026-11-01 10:00:00+00' as t_start, 2.5::decimal(9, 3) as total_s, 0.5::float as ttft_s, "
        "812::utinyint + 0 as input_tokens, true as stream, {'a': 1} as s, [1, 2] as l, map {'k': 1} as m, uuid() as id"
    ).replace("812::utinyint + 0", "812::usmallint")
    duckdb.execute(f"copy ({sql}) to '{path}' (format parquet)")
    call = ingest(str(path)).only()
    assert (call["t_start"], call["total_s"], call["ttft_s"], call["input_tokens"]) == (1793527200.0, 2.5, 0.5, 812)
    assert call["stream"] is True


def test_a_table_of_langfuse_in_parquet_has_maps(ingest, tmp_path):
    path = tmp_path / "a.parquet"
    sql = (
        "select 'GENERATION' as type, 't' as trace_id, timestamp '2026-11-01 10:00:00' as start_time, "
        "timestamp '2026-11-01 10:00:03.5' as end_time, timestamp '2026-11-01 10:00:00.5' as completion_start_time, "
        "map {'input': 812, 'output': 143} as usage_details, 'gpt-4o' as provided_model_name"
    )
    duckdb.execute(f"copy ({sql}) to '{path}' (format parquet)")
    call = ingest(str(path)).only()
    assert (call["ttft_s"], call["total_s"], call["input_tokens"], call["output_tokens"]) == (0.5, 3.5, 812, 143)


def test_parquet_rows_left_out_are_told_by_row(ingest, tmp_path):
    path = tmp_path / "a.parquet"
    duckdb.execute(f"copy (select * from (values (1.5), (-1), (2.5)) t(total_s)) to '{path}' (format parquet)")
    assert ingest(str(path)).messages == ["1 row left out, a time below zero (first at a.parquet:2)"]


@pytest.mark.parametrize("share", [0.01, 0.5, 0.95])
def test_a_cut_parquet_file_is_told_and_the_next_one_read(ingest, write, tmp_path, share):
    path = tmp_path / "a.parquet"
    duckdb.execute(f"copy (select random() + 1 as total_s from range(5000)) to '{path}' (format parquet)")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    read = ingest(str(path), write("b.csv", log("p,m,0.5,2.5,200")))
    assert len(read.calls) == 1
    assert read.says("a.parquet: cannot be read")


def test_calls_stay_in_the_order_of_the_log(ingest, tmp_path):
    path = tmp_path / "a.parquet"
    rows = "select i + 1.0 as total_s, 'ok' as status from range(400_000) r(i)"
    duckdb.execute(f"copy ({rows}) to '{path}' (format parquet, row_group_size 2048)")
    assert ingest(str(path)).column("total_s") == [float(number + 1) for number in range(400_000)]


def test_moments_without_a_zone_are_counted(ingest, write):
    rows = ["2026-11-01 10:00:00,2.5", "2026-11-01T10:00:00Z,2.5", "2026-11-01 11:00:00+01,2.5", "1793527200,2.5"]
    read = ingest(write("a.csv", log(*rows, head="t_start,total_s")))
    assert read.column("t_start") == [1793527200.0] * 4
    assert read.messages == ["plain table: in 1 row t_start has no zone and is taken as UTC"]


def test_retries_and_the_best_of_several_are_said(ingest, write):
    read = ingest(write("a.csv", log("2.5,2,0.5,sea", "2.5,0,,", head="total_s,num_retries,ttr,region")))
    assert read.says("in 1 row", "retried inside its time")
    assert read.says("in 1 row", "the tail is cut off")
