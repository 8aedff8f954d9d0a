"""The small language in which formats say where a call's columns come from: expressions over a log's named fields.

Every field arrives as text, a number or a truth value, or not at all; an expression never fails, it is null.
"""

from dataclasses import dataclass

__all__ = [
    "Expr",
    "answered",
    "any_of",
    "both",
    "either",
    "field",
    "greatest",
    "inside",
    "is_not",
    "log_moment",
    "millis",
    "moment",
    "number",
    "seconds_or_millis",
    "text",
    "truth",
    "word",
    "zoneless",
]

# Moments come as seconds, milliseconds, microseconds or nanoseconds since 1970; from these values on it is the finer unit.
FINER_FROM = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
TRUE_WORDS = ("true", "t", "1", "yes", "hit")
FALSE_WORDS = ("false", "f", "0", "no", "miss")
ANSWERED = ("ok", "success", "succeeded", "successful", "completed", "complete", "done", "stop")
# A date and a time of day, and nothing after them that names a zone.
ZONELESS = r"^\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?$"


@dataclass(frozen=True, slots=True)
class Expr:
    """SQL over fields, and which fields it reads."""

    sql: str
    reads: frozenset[str] = frozenset()

    def __sub__(self, other: "Expr") -> "Expr":
        return Expr(f"({self.sql} - {other.sql})", self.reads | other.reads)

    def __add__(self, other: "Expr") -> "Expr":
        return Expr(f"({self.sql} + {other.sql})", self.reads | other.reads)

    def __truediv__(self, divisor: float) -> "Expr":
        return Expr(f"({self.sql} / {divisor!r})", self.reads)

    def __mul__(self, other: "Expr") -> "Expr":
        return Expr(f"({self.sql} * {other.sql})", self.reads | other.reads)

    def where(self, condition: "Expr") -> "Expr":
        """Itself where the condition is true, else null."""
        return Expr(f"(case when {condition.sql} then {self.sql} end)", self.reads | condition.reads)

    def below(self, limit: "float | Expr") -> "Expr":
        """Whether this number is smaller; null where there is none."""
        return self._compared("<", limit)

    def above(self, limit: "float | Expr") -> "Expr":
        """Whether this number is larger; null where there is none."""
        return self._compared(">", limit)

    def known(self) -> "Expr":
        """Whether there is a value."""
        return Expr(f"({self.sql} is not null)", self.reads)

    def has(self, part: str) -> "Expr":
        """Whether this text holds the part; null where there is no text."""
        return Expr(f"contains({self.sql}, {_quoted(part)})", self.reads)

    def within(self, *words: str) -> "Expr":
        """Whether this text, in lower case, is one of the words; null where there is no text."""
        # Neither `in` nor a list: of five words DuckDB makes a join, and rows come out of order.
        cases = " ".join(f"when {_quoted(word)} then true" for word in words)
        return Expr(f"(case lower({self.sql}) {cases} else ({self.sql} is null and null) end)", self.reads)

    def _compared(self, sign: str, limit: "float | Expr") -> "Expr":
        if isinstance(limit, Expr):
            return Expr(f"({self.sql} {sign} {limit.sql})", self.reads | limit.reads)
        return Expr(f"({self.sql} {sign} {limit!r})", self.reads)


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
    return Expr(_quoted(value))


def number(name: str, per: float = 1.0) -> Expr:
    """A field as a number, divided by `per`; null where it is no finite number."""
    raw = field(name)
    cast = f"try_cast({raw.sql} as double)"
    finite = f"(case when isfinite({cast}) then {cast} end)"
    return Expr(finite if per == 1.0 else f"({finite} / {per!r})", raw.reads)


def millis(name: str) -> Expr:
    """Milliseconds as seconds."""
    return number(name, 1000.0)


def seconds_or_millis(name: str, whole_s: Expr) -> Expr:
    """A part of a time that is known from elsewhere, in whichever unit fits: more than 20 × the whole is milliseconds."""
    value = number(name)
    reads = value.reads | whole_s.reads
    fits = f"{whole_s.sql} > 0 and {value.sql} > 20 * {whole_s.sql}"
    return Expr(f"(case when {fits} then {value.sql} / 1000.0 else {value.sql} end)", reads)


def inside(name: str, key: str) -> Expr:
    """A number in a field that holds JSON as text, by its key."""
    raw = text(name)
    found = f"json_extract_string(case when json_valid({raw.sql}) then {raw.sql} end, {_quoted('$.' + chr(34) + key + chr(34))})"
    cast = f"try_cast({found} as double)"
    return Expr(f"(case when isfinite({cast}) then {cast} end)", raw.reads)


def moment(name: str) -> Expr:
    """When something happened, as seconds since 1970: a number in any unit, or ISO 8601; without a zone it is taken as UTC."""
    value, raw = number(name), text(name)
    cases = " ".join(f"when abs({value.sql}) >= {least!r} then {value.sql} / {per!r}" for least, per in FINER_FROM)
    parsed = f"epoch(try_cast({raw.sql} as timestamptz))"
    return Expr(f"(case when {value.sql} is null then {parsed} {cases} else {value.sql} end)", raw.reads)


def log_moment(name: str) -> Expr:
    """A moment as web servers write it: 01/Nov/2026:10:00:00 +0000."""
    raw = text(name)
    return Expr(f"epoch(try_strptime({raw.sql}, '%d/%b/%Y:%H:%M:%S %z'))", raw.reads)


def zoneless(name: str) -> Expr:
    """Whether a moment is written as date and time without saying in which zone."""
    raw = text(name)
    return Expr(f"regexp_matches({raw.sql}, {_quoted(ZONELESS)})", raw.reads)


def answered(name: str) -> Expr:
    """Whether a status, an HTTP code or a word, stands for an answer; null where there is none."""
    code, raw = number(name), text(name)
    words = raw.within(*ANSWERED)
    sql = f"(case when {code.sql} is not null then {code.sql} >= 200 and {code.sql} < 300 else {words.sql} end)"
    return Expr(sql, raw.reads)


def truth(name: str) -> Expr:
    """A field as true or false, in the words logs use."""
    raw = text(name)
    yes, no = raw.within(*TRUE_WORDS), raw.within(*FALSE_WORDS)
    return Expr(f"(case when {yes.sql} then true when {no.sql} then false end)", raw.reads)


def either(*choices: Expr) -> Expr:
    """The first that is not null."""
    reads = frozenset[str]().union(*(choice.reads for choice in choices))
    return choices[0] if len(choices) == 1 else Expr(f"coalesce({', '.join(choice.sql for choice in choices)})", reads)


def is_not(condition: Expr) -> Expr:
    """True where the condition is false, or where it says nothing."""
    return Expr(f"(not coalesce({condition.sql}, false))", condition.reads)


def any_of(*conditions: Expr) -> Expr:
    """True where one of them is."""
    reads = frozenset[str]().union(*(each.reads for each in conditions))
    return Expr(f"({' or '.join(f'coalesce({each.sql}, false)' for each in conditions)})", reads)


def both(left: Expr, right: Expr) -> Expr:
    """True where both are."""
    return Expr(f"({left.sql} and {right.sql})", left.reads | right.reads)


def greatest(*choices: Expr) -> Expr:
    """The largest that is known."""
    reads = frozenset[str]().union(*(choice.reads for choice in choices))
    return Expr(f"greatest({', '.join(choice.sql for choice in choices)})", reads)


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
