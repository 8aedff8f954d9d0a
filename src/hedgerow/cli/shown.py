"""Names and messages that come from a log, as a terminal may show them: none of it is markup, and none of it moves the cursor."""

from rich.markup import escape

__all__ = ["plain", "shown"]

STANDS_FOR = "�"


def plain(text: str) -> str:
    """Without control characters, and without those that turn the direction of what follows."""
    return "".join(each if each.isprintable() else STANDS_FOR for each in text)


def shown(name: object) -> str:
    """The same, for a text that rich reads markup in."""
    text = escape(plain(str(name)))
    # A backslash before a tag of ours would make that a text.
    return f"{text}\\" if text.endswith("\\") and not text.endswith("\\\\") else text
