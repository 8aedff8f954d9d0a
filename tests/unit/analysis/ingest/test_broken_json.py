"""JSON as it really is: lines, lists, pretty print, cut and broken; every record has its line."""

import gzip
import json

import pytest

GOOD = {"total_s": 2.5, "ttft_s": 0.5, "model": "m"}
LINE = json.dumps(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        f"{LINE}\n{LINE}\n",
        f"\n\n{LINE}\r\n\r\n{LINE}",
        f"\ufeff{LINE}\n{LINE}",
        f"[{LINE},{LINE}]",
        f"[{LINE}]\n[{LINE}]\n",
        json.dumps([GOOD, GOOD], indent=2),
        json.dumps(GOOD, indent=2) * 2,
        f"[\n{LINE},\n{LINE}\n]\n",
        f'{{"data": [{LINE}, {LINE}]}}',
        json.dumps({"result": [GOOD, GOOD]}, indent=4),
    ],
)
def test_lines_lists_and_documents_are_told_apart(ingest, write, text):
    read = ingest(write("a.json", text))
    assert (read.column("total_s"), read.messages) == ([2.5, 2.5], [])


def test_lines_that_are_no_records_are_left_out_by_line(ingest, write):
    read = ingest(write("a.jsonl", f'{LINE}\n{{"total_s": \n"text"\n5\nnull\n{LINE}\n{{"other": 1}}\n'))
    assert len(read.calls) == 2
    assert "2 rows left out, not JSON (first at a.jsonl:2, a.jsonl:5)" in read.messages
    assert "2 rows left out, not a record (first at a.jsonl:3, a.jsonl:4)" in read.messages
    assert "1 row left out, of no known format (first at a.jsonl:7)" in read.messages


def test_a_log_of_lines_may_begin_with_a_broken_one(ingest, write):
    read = ingest(write("a.jsonl", f'{{"total_s": 1, "mod\n{LINE}\n{LINE}\n'))
    assert (len(read.calls), read.rejected) == (2, {"not JSON": 1})


def test_lines_of_records_in_a_pretty_document_are_told(ingest, write):
    rows = [GOOD, {"total_s": -1}, GOOD]
    read = ingest(write("a.json", json.dumps(rows, indent=1)))
    assert read.messages == ["1 row left out, a time below zero (first at a.json:7)"]


def test_a_document_that_breaks_is_used_as_far_as_it_goes(ingest, write):
    text = json.dumps([GOOD, GOOD, GOOD], indent=1)
    read = ingest(write("a.json", text[: text.rindex("2.5")]), write("b.jsonl", LINE))
    assert len(read.calls) == 3
    assert read.says("a.json:12", "not JSON from here on")


def test_a_list_that_is_not_closed_is_told(ingest, write):
    read = ingest(write("a.json", f"[\n{LINE},\n{LINE}\n"))
    assert (len(read.calls), read.says("a.json", "the list is not closed")) == (2, True)


def test_a_list_larger_than_the_window_is_read_element_by_element(ingest, write):
    rows = [{"total_s": 1 + number / 1000, "note": "ü" * 300} for number in range(8000)]
    read = ingest(write("a.json", json.dumps(rows, indent=1, ensure_ascii=False)))
    assert read.column("total_s") == [row["total_s"] for row in rows]


def test_one_huge_line_does_not_spoil_the_others(ingest, write):
    huge = json.dumps({**GOOD, "prompt": "x" * 5_000_000, "model": "y" * 100_000})
    read = ingest(write("a.jsonl", f"{LINE}\n{huge}\n{LINE}\n"))
    assert (read.column("total_s"), read.column("model")) == ([2.5] * 3, ["m", "", "m"])


def test_what_python_writes_for_no_number_is_not_known(ingest, write):
    read = ingest(write("a.jsonl", '{"total_s": 2.5, "ttft_s": NaN}\n{"total_s": Infinity, "ttft_s": 0.5}\n'))
    assert read.column("total_s") == [2.5, None]
    assert read.column("ttft_s") == [None, 0.5]


def test_values_of_any_kind_are_read_or_not_known(ingest, write):
    odd = [True, [1], {"a": 1}, "x", None, 10**30, "1e999", "\u0000", "0x10"]
    read = ingest(write("a.jsonl", [{"total_s": 2.5, "ttft_s": each, "model": each} for each in odd]))
    assert len(read.calls) + sum(read.rejected.values()) == len(odd)
    assert [call["ttft_s"] for call in read.calls if call["ttft_s"] not in (None, 1.0)] == []


def test_nesting_and_half_surrogates_are_no_trouble(ingest, write):
    deep = '{"a":' * 3000 + "1" + "}" * 3000
    lists = '{"total_s": 2.5, "model": ' + "[" * 500 + "]" * 500 + "}"
    read = ingest(write("a.jsonl", f'{LINE}\n{deep}\n{lists}\n{{"model": "\\ud800", "total_s": 1}}\n{LINE}\n'))
    assert read.column("total_s") == [2.5, 2.5, 2.5]
    assert read.rejected == {"not JSON": 2}


def test_a_cut_gzip_is_read_as_far_as_it_goes(ingest, write):
    lines = "".join(
        json.dumps({"total_s": 1 + number, "model": f"m{number * 7919 % 1000}"}) + "\n" for number in range(20_000)
    )
    content = gzip.compress(lines.encode())
    read = ingest(write("a.jsonl.gz", content[: len(content) // 2]), write("b.jsonl", LINE))
    assert 2_000 < len(read.calls) < 18_000
    assert read.calls[-1]["total_s"] == 2.5
    assert read.says("a.jsonl.gz:", "breaks off here")


def test_a_gzip_cut_in_its_first_line_is_told(ingest, write):
    content = gzip.compress(json.dumps({"total_s": 1, "note": "".join(map(str, range(60_000)))}).encode())
    assert ingest(write("a.gz", content[:2000])).says("a.gz")
    assert ingest(write("b.gz", content[:12])).says("b.gz")


def test_a_gzip_with_a_wrong_checksum_is_told(ingest, write):
    content = bytearray(gzip.compress(f"{LINE}\n{LINE}\n".encode()))
    content[-6] ^= 0xFF
    read = ingest(write("a.gz", bytes(content)))
    assert read.column("total_s") == [2.5, 2.5]
    assert read.says("a.gz:3", "breaks off here")


def test_a_gzip_may_have_several_members_and_padding(ingest, write):
    read = ingest(write("a.gz", gzip.compress(f"{LINE}\n".encode()) * 3 + b"\0" * 50))
    assert (len(read.calls), read.messages) == (3, [])
