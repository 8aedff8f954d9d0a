"""Builds HTML in which nothing can go unescaped: plain text is escaped, only `Html` is taken as it is."""

from html import escape

__all__ = ["Html", "element", "joined", "table"]

VOID = frozenset({"meta", "line", "rect", "circle", "path"})


class Html(str):
    """Markup that is safe as it stands."""

    __slots__ = ()


def element(tag: str, /, *children: str | None, **attributes: str | float | None) -> Html:
    """`<tag attributes>children</tag>`. Attribute names: `_` stands for `-`, a trailing one is dropped (`class_`)."""
    said = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = joined(*children)
    return Html(f"<{tag}{said}/>" if tag in VOID and not inside else f"<{tag}{said}>{inside}</{tag}>")


def joined(*parts: str | None) -> Html:
    """One after the other; None is left out."""
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts if part is not None))


def table(
    head: list[str], rows: list[list[str]], *, caption: str | None = None, marked: frozenset[int] = frozenset()
) -> Html:
    """A table that scrolls in a box of its own on narrow screens. The first column is text, the others are figures. marked:
    rows that stand out."""
    body = [
        element(
            "tr",
            *(
                element("th" if not place else "td", cell, scope=None if place else "row")
                for place, cell in enumerate(row)
            ),
            class_="marked" if number in marked else None,
        )
        for number, row in enumerate(rows)
    ]
    scrolled = element(
        "div",
        element(
            "table",
            element("thead", element("tr", *(element("th", cell, scope="col") for cell in head))),
            element("tbody", *body),
        ),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label=caption or head[0],
    )
    return scrolled if caption is None else joined(element("p", caption, class_="caption"), scrolled)


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
