"""Every block of the page is run by a test of its section, and none is left over."""

from pathlib import Path

import pytest

from tests.frameworks.page import BLOCKS

HERE = Path(__file__).parent
TESTS = [path.read_text() for path in sorted(HERE.glob("c*/test_*.py"))]


@pytest.mark.parametrize(("section", "way"), BLOCKS, ids=lambda each: each)
def test_a_test_runs_it(section: str, way: str) -> None:
    (tests,) = [text for text in TESTS if f'NAME = "{section}"' in text]
    both = way in ("library", "gateway") and "rescue.run(NAME, name)" in tests.replace("block)", "name)")
    assert both or f'"{way}"' in tests, f"nothing runs {way} of {section}"


def test_the_page_has_blocks() -> None:
    assert len(BLOCKS) > 20
