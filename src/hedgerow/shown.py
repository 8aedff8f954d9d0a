"""What a message shows of a value or a name in a file: what is known to be harmless, as it is; of anything else, which may be a
secret in the wrong place, only its kind."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time
from difflib import get_close_matches
from urllib.parse import urlsplit

__all__ = ["Unshown", "listed", "looks_like_a_key", "shown_address", "shown_name", "shown_value", "unshown"]

PLAIN = re.compile(r"[A-Za-z0-9 .,:/*%+_\[\]-]{1,60}")
RUN = re.compile(r"[A-Za-z0-9]+")
BEGINNINGS = r"(?<![A-Za-z0-9])(sk|pk|rk|hr|gsk|xai|hf|pplx|r8|ghp|key)[-_][A-Za-z0-9]|AIza|AKIA|(?i:bearer )"
ASSIGNED = r"://[^/]*@|(?i:passw[a-z]*|secret|token|key)\s*="
KEY = re.compile(f"{BEGINNINGS}|{ASSIGNED}")
TELLING = re.compile(r"(?i)secret|passw|token|key|credential")
LONGEST_MIX, LONGEST_LETTERS = 11, 20  # of letters with digits, and of letters alone, in what people call things
KINDS: Sequence[tuple[type, str]] = (
    (bool, "true or false"),
    (int, "a number"),
    (float, "a number"),
    (str, "a text"),
    (Mapping, "a table"),
    (list, "a list"),
    (tuple, "a list"),
    (date, "a date"),
    (time, "a time"),
)
ALIKE = 0.75  # of difflib's ratio: `api_kye` is, `api_key-1f2e3d` is not
MOST = 1e12


@dataclass(frozen=True, slots=True)
class Unshown:
    """Stands for a value where it would be printed."""

    kind: str

    def __repr__(self) -> str:
        return f"({self.kind}, not shown)"


def unshown(value: object) -> Unshown:
    """Only what kind of value it is."""
    if isinstance(value, str) and not value.strip():
        return Unshown("an empty text")
    return Unshown(next((name for kind, name in KINDS if isinstance(value, kind)), "a value"))


def shown_value(value: object, *, words: bool = True) -> object:
    """None, true and false, a number that no key has, and, with `words`, a text that is a plain word or two; else its kind."""
    if value is None or isinstance(value, bool | Unshown):
        return value
    if isinstance(value, int | float):
        return value if abs(value) < MOST or value != value else unshown(value)
    harmless = isinstance(value, str) and words and _is_plain(value) and not TELLING.search(value)
    return value if harmless else unshown(value)


def shown_name(name: str, known: Collection[str]) -> str:
    """A name that is known or is like one of those; another only in general."""
    if name in known or (get_close_matches(name, known, 1, ALIKE) and _is_plain(name)):
        return name
    return "(a name that is not known here)"


def listed(names: Iterable[str]) -> str:
    """What people have called things, with … for what looks like a key."""
    return ", ".join("…" if looks_like_a_key(name) else name for name in names)


def shown_address(url: str) -> object:
    """An http address without user, query and fragment, and with … for each part that could be a key; else its kind."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return unshown(url)
    if parts.scheme not in ("http", "https") or not host:
        return unshown(url)
    named = ".".join(map(_part, host.split("."))) if ":" not in host else f"[{host}]"
    path = "/".join(map(_part, parts.path.split("/")))
    return f"{parts.scheme}://{named}{'' if port is None else f':{port}'}{path}"


def looks_like_a_key(text: str) -> bool:
    """Does it hold what keys begin with, or how they are passed on, or a long run of letters and digits?"""
    return bool(KEY.search(text)) or any(_is_long(run[0]) for run in RUN.finditer(text))


def _part(part: str) -> str:
    return "…" if looks_like_a_key(part) or "%" in part or "@" in part else part


def _is_plain(text: str) -> bool:
    return PLAIN.fullmatch(text) is not None and not looks_like_a_key(text)


def _is_long(run: str) -> bool:
    return len(run) > (LONGEST_LETTERS if run.isalpha() else LONGEST_MIX)
