"""Whatever a file holds, reading it ends with calls or with a message, never with an exception."""

import gzip
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedgerow.analysis.ingest.formats import FORMATS
from hedgerow.analysis.ingest.problems import Problems
from hedgerow.analysis.ingest.read import read_logs
from hedgerow.analysis.trace import Trace

NAMES = sorted(frozenset[str]().union(*(each.reads() for each in FORMATS)))
TOPS = [
    "resourceSpans",
    "ttfts",
    "itls",
    "modelId",
    "timestamp",
    "output",
    "message",
    "ingestionTime",
    "attempts",
    "data",
]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.sampled_from(NAMES)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner),
    max_leaves=8,
)
RECORDS = st.dictionaries(st.sampled_from(NAMES + TOPS), VALUES, max_size=12)
MAGIC = st.sampled_from(
    [b"", b"PAR1", b"SQLite format 3\x00", b"\x1f\x8b\x08", b"{", b"[", b"total_s,model\n", b"\xef\xbb\xbf"]
)
unhurried = settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def read(trace: Trace, content: bytes) -> None:
    trace.base.execute("truncate calls")
    path = trace.folder / "log"
    path.write_bytes(content)
    problems = Problems()
    taken = read_logs([str(path)], trace, problems)
    assert taken or problems.messages() or not content.strip()
    rows = trace.base.execute("select count(*) from calls where ok and coalesce(total_s, ttft_s) is null").fetchall()
    assert rows == [(0,)]


@unhurried
@given(MAGIC, st.binary(max_size=400), st.booleans())
def test_any_bytes(trace, start, content, zipped):
    read(trace, gzip.compress(start + content) if zipped else start + content)


@unhurried
@given(st.lists(RECORDS, min_size=1, max_size=4), st.integers(0, 30))
def test_any_records_even_cut(trace, records, cut):
    text = "\n".join(json.dumps(each) for each in records).encode()
    read(trace, text[: len(text) - cut] if cut < len(text) else text)


@unhurried
@given(st.lists(st.lists(st.text(max_size=6), min_size=1, max_size=4), min_size=1, max_size=5))
def test_any_rows_below_a_known_head(trace, rows):
    text = "t_start,model,total_s,status\n" + "\n".join(",".join(row) for row in rows)
    read(trace, text.encode(errors="replace"))
