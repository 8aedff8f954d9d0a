"""`--map`: which field of a log stands for what, said by the user instead of found out."""

from collections.abc import Callable, Sequence

from hedgerow.analysis.ingest.fields import (
    Expr,
    answered,
    either,
    moment,
    number,
    text,
    truth,
    word,
    zoneless,
)
from hedgerow.analysis.ingest.format import Format
from hedgerow.errors import SettingError

__all__ = ["MAP_NAMES", "mapped_format"]

PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
# What people write for a unit that there is not; a field's name may have a colon too.
MISTAKEN_UNITS = ("m", "min", "minutes", "sec", "secs", "seconds", "millis", "milliseconds", "micros", "h")
MOMENTS, TIMES = ("start", "end"), ("ttft", "total")
COUNTS = {"input": "input_tokens", "output": "output_tokens", "cached": "cached_tokens", "cost": "cost_usd"}
TEXTS = {"provider": "provider", "model": "model", "trace": "trace_id", "segment": "segment"}
TRUTHS = ("ok", "status", "stream", "cache_hit")
MAP_NAMES = (*MOMENTS, *TIMES, *TEXTS, *COUNTS, *TRUTHS)
FIX = "write --map ttft=FIELD:ms, --map total=FIELD, --map model==gpt-4o"


def mapped_format(assignments: Sequence[str]) -> Format:
    """A format from items `name=field`, `name=field:unit` (times; s, ms, us or ns, default s) or `name==text` (a constant).

    Nested fields are named by their path: `usage.input`. Raises SettingError for an unknown name, a unit that there is not,
    a name given twice, or if neither `total`, `ttft` nor both `start` and `end` are there.
    """
    said: dict[str, Expr] = {}
    without_zone: dict[str, Expr] = {}
    for assignment in assignments:
        name, field = _split(assignment)
        if name in said:
            raise SettingError("--map", assignment, "each name once", fix=f"leave one {name}= out")
        said[name] = _expression(name, field, assignment)
        if name in MOMENTS:
            without_zone[f"{name} has no zone and is taken as UTC"] = zoneless(_without_unit(field)[0])
    total = _total(said)
    if not {"total", "ttft"} & said.keys() and not {"start", "end"} <= said.keys():
        allowed = "at least total, ttft, or start and end"
        raise SettingError("--map", ", ".join(assignments) or "nothing", allowed, fix=FIX)
    columns = {column: said[name] for name, column in (COUNTS | TEXTS).items() if name in said}
    columns |= {column: said[name] for name, column in (("ttft", "ttft_s"), ("stream", "stream")) if name in said}
    if total is not None:
        columns["total_s"] = total
    if (begun := _begun(said, total)) is not None:
        columns["t_start"] = begun
    if verdicts := [said[name] for name in ("ok", "status") if name in said]:
        columns["ok"] = either(*verdicts)
    return Format(
        name="--map",
        needs=(tuple(sorted(frozenset[str]().union(*(each.reads for each in said.values())))),),
        columns=columns,
        skip={"a cache hit": said["cache_hit"]} if "cache_hit" in said else {},
        notices=without_zone,
        exacting=True,
    )


def _split(assignment: str) -> tuple[str, str]:
    name, equals, field = assignment.partition("=")
    name = name.strip()
    if not equals or not field.strip("= "):
        raise SettingError("--map", assignment, "NAME=FIELD, NAME=FIELD:UNIT or NAME==TEXT", fix=FIX)
    if name not in MAP_NAMES:
        raise SettingError("--map", assignment, f"names: {', '.join(MAP_NAMES)}", fix=FIX)
    return name, field


def _expression(name: str, field: str, assignment: str) -> Expr:
    if field.startswith("="):
        if name not in TEXTS:
            allowed = f"a constant text for {', '.join(TEXTS)}"
            raise SettingError("--map", assignment, allowed, fix=f"name a field: --map {name}=FIELD")
        return word(field[1:].strip())
    plain, unit = _without_unit(field)
    if name in MOMENTS or name in TIMES:
        _, _, suffix = field.rpartition(":")
        if unit is None and suffix != field and suffix.strip().lower() in MISTAKEN_UNITS:
            raise SettingError("--map", assignment, f"units: {', '.join(PER_SECOND)}", fix=FIX)
        if name in MOMENTS:
            return moment(plain) if unit is None else either(number(plain, PER_SECOND[unit]), moment(plain))
        return number(plain, PER_SECOND[unit or "s"])
    if unit is not None:
        raise SettingError(
            "--map", assignment, f"a unit for {', '.join((*MOMENTS, *TIMES))}", fix=f"--map {name}={plain}"
        )
    return _kind(name)(field.strip())


def _kind(name: str) -> Callable[[str], Expr]:
    if name in COUNTS:
        return number
    if name in TEXTS:
        return text
    return answered if name == "status" else truth


def _without_unit(field: str) -> tuple[str, str | None]:
    plain, colon, unit = field.rpartition(":")
    return (plain.strip(), unit.strip()) if colon and unit.strip() in PER_SECOND else (field.strip(), None)


def _total(said: dict[str, Expr]) -> Expr | None:
    if "total" in said:
        return said["total"]
    return said["end"] - said["start"] if {"start", "end"} <= said.keys() else None


def _begun(said: dict[str, Expr], total: Expr | None) -> Expr | None:
    """When a call began: said, or reckoned from its end."""
    if "start" in said or "end" not in said or total is None:
        return said.get("start")
    return said["end"] - total
