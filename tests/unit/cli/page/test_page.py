"""The page behind `--report`: whole, escaped, without a script, with every figure of the tables."""

from collections import Counter
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hedgerow.analysis.describe.analyze import Analysis, Question, analyze
from hedgerow.analysis.ingest.problems import Place, Problems
from hedgerow.analysis.ingest.read import read_logs
from hedgerow.analysis.trace import open_trace
from hedgerow.analysis.whatif.run import KeyWhatIf, Options, what_if
from hedgerow.cli.page.page import page_of
from hedgerow.cli.page.scales import linear, logarithmic

VOID = {"meta", "line", "rect", "circle", "path"}
AT = datetime(2026, 11, 1, tzinfo=UTC)


class Reader(HTMLParser):
    """Fails on tags that do not match; collects what there is."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.text: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self.tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without its beginning"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Analysis, list[KeyWhatIf]]:
    """A log with one key that stalls, one that is calm, one of a single call; with HTML in a name."""
    rng, rows = np.random.default_rng(1), list[str]()
    for model, n, stalls in (("slow<b>&\"'", 1200, 0.03), ("calm", 400, 0.0), ("lonely", 1, 0.0)):
        tokens = rng.integers(20, 100, n)
        first = 0.4 + 0.2 * rng.random(n) + np.where(rng.random(n) < stalls, 20.0, 0)
        start = 1.79e9 + np.cumsum(rng.exponential(120, n))
        name = '"' + model.replace('"', '""') + '"'
        total = first + 0.01 * tokens
        rows += [f"{start[k]:.2f},acme,{name},{first[k]:.4f},{total[k]:.4f},800,{tokens[k]},ok" for k in range(n)]
    path = tmp_path_factory.mktemp("logs") / "calls.csv"
    path.write_text("\n".join(["t_start,provider,model,ttft_s,total_s,input_tokens,output_tokens,status", *rows]))
    problems = Problems()
    with open_trace() as trace:
        read_logs([str(path)], trace, problems)
        problems.reject("<script>alert(1)</script>", 2, [Place("f.csv", 3)])
        return analyze(trace, problems, Question(at=AT)), what_if(trace, problems, Options(question=Question(at=AT)))


def test_the_page_of_an_analysis_is_whole_and_shows_every_key(results: tuple[Analysis, list[KeyWhatIf]]) -> None:
    analysis, _ = results
    found = read(page_of(analysis=analysis))
    text = " ".join(found.text)
    for key in analysis.keys:
        assert str(key.name) in text
    assert found.tags["svg"] == 2  # all keys; the hours of the flagged one
    assert found.tags["table"] >= 3
    assert "1,601 calls of 3 keys" in text


def test_the_page_of_what_ifs_shows_every_policy_and_the_settings(results: tuple[Analysis, list[KeyWhatIf]]) -> None:
    _, whatifs = results
    found = read(page_of(found=whatifs))
    text = " ".join(found.text)
    (worth,) = [each for each in whatifs if each.verdict.worth]
    for policy in worth.policies:
        assert policy.policy in text
        assert policy.full_response is not None
        assert f"{policy.full_response.p99:.2f}" in text or f"{policy.full_response.p99:,.1f}" in text
    assert worth.toml is not None
    assert worth.toml in text
    for each in whatifs:
        assert each.verdict.reason in text


def test_names_from_a_log_cannot_become_markup(results: tuple[Analysis, list[KeyWhatIf]]) -> None:
    analysis, whatifs = results
    for page in (page_of(analysis=analysis), page_of(found=whatifs)):
        assert "slow<b>" not in page
        assert "<script" not in page
        assert read(page).tags["b"] <= 1


def test_a_page_needs_nothing_from_elsewhere(results: tuple[Analysis, list[KeyWhatIf]]) -> None:
    analysis, whatifs = results
    for page in (page_of(analysis=analysis), page_of(found=whatifs)):
        assert read(page).links == []
        assert "url(" not in page
        assert "@import" not in page
        assert "http" not in page.lower()


def test_nothing_to_show_is_still_a_page() -> None:
    empty = Analysis(rows_read=0, problems=Problems(), keys=[], traces=None, trace_cost_usd=None)
    read(page_of(analysis=empty))
    read(page_of(found=[]))


def test_axes_hold_all_values_between_round_marks() -> None:
    scale = logarithmic([0.3, 75.0], 0, 100)
    assert scale.low <= 0.3
    assert scale.high >= 75
    assert 0 <= scale.at(0.3) < scale.at(75.0) <= 100
    assert linear(7.3, 100, 0).high == 8
    assert linear(7.3, 100, 0).at(0) == 100


def test_the_style_ships_with_the_package() -> None:
    import hedgerow.cli.page as package

    assert (Path(package.__file__).parent / "page.css").is_file()
