"""Which files are read: names, folders, globs, standard input, pipes; each once; and what is none."""

import io
import os
import random
import threading

import pytest

LOG = "model,total_s\nm,2.5\n"


def test_folders_and_globs_are_read_in_the_order_of_their_names(ingest, write, tmp_path):
    write("logs/b.csv", LOG.replace("2.5", "2"))
    write("logs/deep/c.csv", LOG.replace("2.5", "3"))
    write("logs/a.csv", LOG.replace("2.5", "1"))
    write("logs/.hidden", "x")
    assert ingest(str(tmp_path / "logs")).column("total_s") == [1.0, 2.0, 3.0]
    assert ingest(str(tmp_path / "logs" / "*.csv")).column("total_s") == [1.0, 2.0]
    assert ingest(str(tmp_path / "**" / "*.csv")).column("total_s") == [1.0, 2.0, 3.0]


def test_a_file_that_is_named_twice_is_read_once(ingest, write, tmp_path):
    path = write("a.csv", LOG)
    os.symlink(path, tmp_path / "link.csv")
    read = ingest(path, str(tmp_path / "*.csv"), path)
    assert len(read.calls) == 1
    assert read.says("a.csv was given twice and is read once")
    assert read.says("link.csv was given twice")


def test_standard_input_is_a_log(ingest, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(LOG.encode() + b"m,-1\n")))
    read = ingest("-")
    assert (read.column("total_s"), read.messages) == ([2.5], ["1 row left out, a time below zero (first at stdin:3)"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_is_a_log(ingest, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(LOG,))
    writer.start()
    assert ingest(str(pipe)).column("total_s") == [2.5]
    writer.join()


def test_what_is_not_there_is_told(ingest, write, tmp_path):
    (tmp_path / "empty").mkdir()
    read = ingest(
        str(tmp_path / "no.csv"), str(tmp_path / "*.gz"), str(tmp_path / "empty"), "x" * 5000, write("a.csv", LOG)
    )
    assert len(read.calls) == 1
    assert read.says("no.csv: no such file")
    assert read.says("*.gz: no such file")
    assert read.says("empty: no files in this folder")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a.log: the file is empty"),
        (b"\n \n", "a.log: the file is empty"),
        (random.Random(5).randbytes(3000), "a.log:1: neither text nor Parquet nor SQLite"),
        (b"PK\x03\x04xyz", "a.log: zip files are not read: unpack it first, or use gzip"),
        (b"\x28\xb5\x2f\xfdxyz", "a.log: zstd files are not read: unpack it first, or use gzip"),
        (b"model,total_s\n", "a.log: there are no rows in it"),
        (b"[]", "a.log: there are no rows in it"),
        (b"hello\nworld\n", "a.log:1: neither JSON nor a CSV with a head line"),
        ("a,b\n1,2\n".encode("utf-16"), "a.log:1: neither text nor Parquet nor SQLite"),
        (b"SQLite format 3\x00" + b"x" * 200, "a.log: not a readable SQLite file"),
        (b"PAR1 but not really", "a.log: cannot be read"),
        (b"\x1f\x8bnot gzip", "a.log: nothing could be unzipped"),
        (b"{", "a.log:1: not JSON from here on"),
    ],
)
def test_what_is_no_log_is_told_and_the_others_are_read(ingest, write, content, message):
    read = ingest(write("a.log", content), write("b.csv", LOG))
    assert len(read.calls) == 1
    assert read.messages[0].startswith(message)


def test_a_sqlite_file_without_a_known_table_is_told_with_its_tables(ingest, tmp_path):
    import sqlite3
    from contextlib import closing

    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as base:
        base.execute("create table things (a, b)")
        base.execute("insert into things values (1, 2)")
        base.commit()
    assert ingest(str(path)).messages == ["a.db: no rows of a known format (its tables: things)"]
