"""The small language in which formats say where a call's columns come from: expressions over a log's named fields.

Every field arrives as text, a number or a truth value, or not at all; an expression never fails, it is null.
"""

from dataclasses import dataclass

__all__ = ["Expr", "either", "field", "is_not", "millis", "moment", "number", "text", "truth", "word"]

# Moments come as seconds, milliseconds, microseconds or nanoseconds since 1970; from these values on it is the finer unit.
FINER_FROM = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
TRUE_WORDS = "('true', 't', '1', 'yes', 'hit')"
FALSE_WORDS = "('false', 'f', '0', 'no', 'miss')"


@dataclass(frozen=True, slots=True)
class Expr:
    """SQL over fields, and which fields it reads."""

    sql: str
    reads: frozenset[str] = frozenset()

    def __sub__(self, other: "Expr") -> "Expr":
        return Expr(f"({self.sql} - {other.sql})", self.reads | other.reads)

    def __add__(self, other: "Expr") -> "Expr":
        return Expr(f"({self.sql} + {other.sql})", self.reads | other.reads)

    def where(self, condition: "Expr") -> "Expr":
        """Itself where the condition is true, else null."""
        return Expr(f"(case when {condition.sql} then {self.sql} end)", self.reads | condition.reads)

    def below(self, limit: float) -> "Expr":
        """Whether this number is smaller; null where there is none."""
        return Expr(f"({self.sql} < {limit!r})", self.reads)

    def within(self, *words: str) -> "Expr":
        """Whether this text, in lower case, is one of the words; null where there is no text."""
        listed = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
        return Expr(f"(lower({self.sql}) in ({listed}))", self.reads)


def field(name: str) -> Expr:
    """A field as it stands. The name is the path in nested records: `usage.input`."""
    quoted = name.replace('"', '""')
    return Expr(f'"{quoted}"', frozenset({name}))


def text(name: str) -> Expr:
    """A field as text; null where it is empty."""
    raw = field(name)
    return Expr(f"nullif(trim({raw.sql}::varchar), '')", raw.reads)


def word(value: str) -> Expr:
    """The same text for every call."""
    return Expr("'" + value.replace("'", "''") + "'")


def number(name: str, per: float = 1.0) -> Expr:
    """A field as a number, divided by `per`; null where it is no finite number."""
    raw = field(name)
    cast = f"try_cast({raw.sql} as double)"
    finite = f"(case when isfinite({cast}) then {cast} end)"
    return Expr(finite if per == 1.0 else f"({finite} / {per!r})", raw.reads)


def millis(name: str) -> Expr:
    """Milliseconds as seconds."""
    return number(name, 1000.0)


def moment(name: str) -> Expr:
    """When something happened, as seconds since 1970: a number in any unit, or ISO 8601; without a zone it is taken as UTC."""
    value, raw = number(name), text(name)
    cases = " ".join(f"when abs({value.sql}) >= {least!r} then {value.sql} / {per!r}" for least, per in FINER_FROM)
    parsed = f"epoch(try_cast({raw.sql} as timestamptz))"
    return Expr(f"(case when {value.sql} is null then {parsed} {cases} else {value.sql} end)", raw.reads)


def truth(name: str) -> Expr:
    """A field as true or false, in the words logs use."""
    raw = text(name)
    return Expr(
        f"(case when lower({raw.sql}) in {TRUE_WORDS} then true when lower({raw.sql}) in {FALSE_WORDS} then false end)",
        raw.reads,
    )


def either(*choices: Expr) -> Expr:
    """The first that is not null."""
    reads = frozenset[str]().union(*(choice.reads for choice in choices))
    return choices[0] if len(choices) == 1 else Expr(f"coalesce({', '.join(choice.sql for choice in choices)})", reads)


def is_not(condition: Expr) -> Expr:
    """True where the condition is false, or where it says nothing."""
    return Expr(f"(not coalesce({condition.sql}, false))", condition.reads)
