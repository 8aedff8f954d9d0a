"""Reading attempt-level data: any order, documented defaults, and what is refused with file, row and column."""

from pathlib import Path

import pytest

from hedgerow.analysis.attempts import Row, load_attempts
from hedgerow.errors import SettingError

HEAD = "request,attempt,start_s,input_tokens,output_tokens,ttft_s,token_s,stall_after_tokens,stall_s"


def written(folder: Path, *lines: str, head: str = HEAD) -> Path:
    path = folder / "attempts.csv"
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def test_rows_come_in_any_order(tmp_path: Path) -> None:
    lines = ("b,1,3,10,7,.5,.01,1,0", "a,0,9,10,5,.6,.01,1,0", "b,0,3,10,6,.7,.01,1,0")
    loaded = load_attempts(written(tmp_path, *lines))
    assert [sent.start_s for sent in loaded.sents] == [3.0, 9.0]
    assert [row.output_tokens for row in loaded.sents[0].rows] == [6, 7]


def test_what_is_left_out_has_the_documented_defaults(tmp_path: Path) -> None:
    (sent,) = load_attempts(written(tmp_path, "1,0,0,10,5,.5,.01,0,0")).sents
    assert (sent.price_in, sent.price_out, sent.model, sent.phase) == (1.0, 4.0, None, None)
    assert sent.rows == (Row(ttft_s=0.5, token_s=0.01, output_tokens=5, stall_after=1, stall_s=0.0, status=200),)


def test_optional_columns_are_read(tmp_path: Path) -> None:
    head = HEAD + ",status,phase,model,price_in,price_out"
    loaded = load_attempts(written(tmp_path, "1,0,0,10,0,.5,.01,0,0,429,7,m,2,8", head=head))
    (sent,) = loaded.sents
    assert loaded.has_phases
    assert (sent.rows[0].status, sent.rows[0].ends_s, sent.phase, sent.model) == (429, 0.5, 7, "m")
    assert sent.cost(3) == 2 * 10 + 8 * 3


def test_parquet_reads_like_csv(tmp_path: Path) -> None:
    import duckdb

    csv, parquet = written(tmp_path, "1,0,0,10,5,.5,.01,1,0", "1,1,0,10,5,.5,.01,1,0"), tmp_path / "it's.parquet"
    quoted = str(parquet).replace("'", "''")
    duckdb.sql(f"copy (from read_csv('{csv}')) to '{quoted}' (format parquet)")
    assert load_attempts(parquet) == load_attempts(csv)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1,0,0,10,0,.5,.01,1,0", "output_tokens = 0"),
        ("1,0,0,10,-3,.5,.01,1,0", "output_tokens = -3"),
        ("1,0,0,10,5.5,.5,.01,1,0", "output_tokens = 5.5"),
        ("1,0,0,10,5,-.5,.01,1,0", "ttft_s = -0.5"),
        ("1,0,0,10,5,.5,nan,1,0", "token_s = nan"),
        ("1,0,0,10,5,.5,.01,1,inf", "stall_s = inf"),
        ("1,0,0,10,5,.5,,1,0", "token_s = None"),
        ("1,0,soon,10,5,.5,.01,1,0", "start_s = 'soon'"),
        ("1,1,0,10,5,.5,.01,1,0", "attempt = 1"),
        ("0,0,0,10,5,.5,.01,1,0", "attempt = 0"),
    ],
)
def test_nonsense_is_refused_with_file_row_and_column(tmp_path: Path, line: str, said: str) -> None:
    path = written(tmp_path, "0,0,0,10,5,.5,.01,1,0", line)
    with pytest.raises(SettingError) as refused:
        load_attempts(path)
    assert str(refused.value).startswith(f"{path}, row 2: {said} is not possible: allowed is ")


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="add start_s, stall_s"):
        load_attempts(written(tmp_path, "1,0,10,5,.5,.01,1", head=HEAD.replace(",start_s", "").replace(",stall_s", "")))


@pytest.mark.parametrize("text", [HEAD + "\n", ""])
def test_a_file_without_rows_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "empty.csv"
    path.write_text(text)
    with pytest.raises(SettingError, match=r"empty\.csv"):
        load_attempts(path)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "no.parquet"
    path.write_bytes(b"\x00\x01")
    with pytest.raises(SettingError, match=r"no\.parquet"):
        load_attempts(path)
    with pytest.raises(SettingError, match="an existing Parquet or CSV file"):
        load_attempts(tmp_path / "none.csv")
