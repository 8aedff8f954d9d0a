"""How a dialect says which of its requests may run twice: a set of fields that are safe, and a rule for each other known one.

What is neither is not hedged: a field we have not heard of may keep state, cost a fee or act on the world.
"""

from collections.abc import Callable, Iterable, Mapping

from hedgerow.short_text import safe_name

__all__ = ["FREE", "Reservations", "Rule", "asks", "forbids", "joined", "judged"]

Reservations = tuple[tuple[str, ...], tuple[str, ...]]
"""(forbidden, needs): why it must never run twice, and which permissions it takes to run it twice."""

Rule = Callable[[object], Reservations]
FREE: Reservations = ((), ())


def judged(body: Mapping[str, object], *, safe: frozenset[str], rules: Mapping[str, Rule]) -> Reservations:
    """What stands against running a request with this body twice; both parts empty = safe. In the order of its fields."""
    return joined(
        rules[field](value) if field in rules else ((f"unknown_field:{safe_name(field)}",), ())
        for field, value in body.items()
        if field not in safe
    )


def joined(found: Iterable[Reservations]) -> Reservations:
    """All of them, each reason once, in order."""
    forbidden: dict[str, None] = {}
    needs: dict[str, None] = {}
    for reasons, permissions in found:
        forbidden.update(dict.fromkeys(reasons))
        needs.update(dict.fromkeys(permissions))
    return tuple(forbidden), tuple(needs)


def forbids(reason: str) -> Rule:
    """A field that forbids as soon as it is set; `{}` sets it, too: it asks for the defaults."""
    return lambda value: FREE if _unset(value) else ((reason,), ())


def asks(permission: str) -> Rule:
    """A field that takes a permission as soon as it is set."""
    return lambda value: FREE if _unset(value) else ((), (permission,))


def _unset(value: object) -> bool:
    return value is None or value is False or value == []
