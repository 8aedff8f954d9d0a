"""A bounded number of keys among owners: what one of them takes is never at the cost of another's share."""

import random

import pytest

from hedgerow.statistics.shares import Shares, put_bounded

MOST = 12


def take(shares: Shares[str], kept: set[str], key: str, owner: str | None) -> None:
    shares.take(key, owner)
    kept.add(key)
    while len(kept) > MOST:
        if (gone := shares.give_up(owner)) is not None:
            kept.remove(gone)


def test_one_owner_alone_has_all_and_loses_what_it_used_least_recently() -> None:
    shares, kept = Shares[str](), set[str]()
    for number in range(MOST):
        take(shares, kept, str(number), None)
    shares.use("0", None)
    take(shares, kept, "new", None)
    assert kept == {"0", "new", *map(str, range(2, MOST))}


@pytest.mark.parametrize("greedy", ["a", None])
def test_a_greedy_owner_pushes_out_only_its_own(greedy: str | None) -> None:
    shares, kept = Shares[str](), set[str]()
    mine = {f"b{number}" for number in range(MOST // 2)}
    for key in mine:
        take(shares, kept, key, "b")
    for number in range(1_000):
        take(shares, kept, f"a{number}", greedy)
    assert mine <= kept
    assert len(kept) == MOST


def test_who_comes_late_gets_its_share_from_whoever_has_more() -> None:
    shares, kept = Shares[str](), set[str]()
    for number in range(100):
        take(shares, kept, f"a{number}", "a")
    for number in range(MOST // 2):
        take(shares, kept, f"b{number}", "b")
    assert sum(key.startswith("b") for key in kept) == MOST // 2


def test_what_several_hold_stays_as_long_as_one_of_them_does() -> None:
    shares, kept = Shares[str](), set[str]()
    take(shares, kept, "shared", "a")
    take(shares, kept, "shared", "b")
    assert sorted(map(str, shares.owners("shared"))) == ["a", "b"]
    for number in range(1_000):
        take(shares, kept, f"a{number}", "a")
    assert "shared" in kept
    assert shares.owners("shared") == ["b"]


def test_whatever_happens_the_number_holds_and_every_owner_keeps_its_share() -> None:
    for seed in range(50):
        drawn, shares, kept = random.Random(seed), Shares[str](), set[str]()
        owners: list[str | None] = ["a", "b", None]
        for _ in range(300):
            owner = drawn.choice([*owners, "a", "a", "a"])
            before = {each: {key for key in kept if each in shares.owners(key)} for each in owners}
            take(shares, kept, str(drawn.randrange(40)), owner)
            assert len(kept) <= MOST
            assert all(shares.owners(key) for key in kept)
            for each in owners:
                lost = {key for key in before[each] if each not in shares.owners(key)}
                assert each == owner or not lost or len(before[each]) > MOST // len(owners)


@pytest.mark.parametrize("most", [0, 1, 5, 9, 100])
def test_the_latest_come_from_each_in_turn(most: int) -> None:
    shares = Shares[str]()
    for number in range(50):
        shares.take(f"a{number}", "a")
    for number in range(3):
        shares.take(f"b{number}", "b")
    latest = shares.latest(most)
    assert len(latest) == min(most, 53)
    if most >= 9:
        assert {"b0", "b1", "b2", "a49", "a48"} <= latest


def test_a_bounded_table_forgets_its_oldest() -> None:
    table = {"a": 1, "b": 2}
    put_bounded(table, "a", 3, 2)
    put_bounded(table, "c", 4, 2)
    assert table == {"a": 3, "c": 4}
