"""The code on docs/guides/frameworks.md, which is what these tests run.

A block there says in its first line what it is, "```python library" or "```python gateway", so that the tests of the other pages,
which have none of these packages, leave it to these.
"""

import re
from pathlib import Path

__all__ = ["ADDRESS", "BLOCKS", "block"]

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "frameworks.md"
ADDRESS = "http://127.0.0.1:8700"  # the gateway's, as the page has it
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```\w+ (library\S*|gateway\S*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks() -> dict[tuple[str, str], str]:
    _, *parts = SECTION.split(PAGE.read_text())
    sections = zip(parts[::2], parts[1::2], strict=True)
    return {(name, way): code for name, text in sections for way, code in BLOCK.findall(text)}


BLOCKS = _blocks()


def block(section: str, way: str) -> str:
    """The code of one way ("library", "gateway") in one section."""
    return BLOCKS[section, way]
