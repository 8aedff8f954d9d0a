"""The bucket, by hand."""

import pytest

from hedgerow.budget.bucket import Bucket


def test_it_starts_with_two_backups() -> None:
    bucket = Bucket(0.05)
    assert [bucket.withdraw() for _ in range(3)] == [True, True, False]
    assert bucket.losing == 2


def test_every_request_deposits_the_budget_and_twenty_pay_for_a_backup_at_five_per_cent() -> None:
    bucket = Bucket(0.05, level=0.0)
    for _ in range(19):
        bucket.deposit(1)
    assert not bucket.withdraw()
    bucket.deposit(1)
    assert bucket.withdraw()


def test_a_backup_that_wins_costs_nothing() -> None:
    bucket = Bucket(0.05)
    assert bucket.withdraw()
    bucket.refund(1)
    assert (bucket.level, bucket.losing) == (2.0, 0)


def test_a_second_backup_needs_five_and_takes_one() -> None:
    bucket = Bucket(0.05, level=4.9)
    assert not bucket.withdraw(5.0)
    bucket.fill(0.1, 1)
    assert bucket.withdraw(5.0)
    assert bucket.level == pytest.approx(4.0)


def test_what_the_cap_cannot_hold_goes_to_the_reserve_which_has_a_cap_too() -> None:
    bucket = Bucket(0.05, level=10.0)
    bucket.fill(3.0, 1)
    assert (bucket.level, bucket.reserve) == (10.0, 3.0)
    bucket.fill(1000.0, 1)
    assert (bucket.level, bucket.reserve) == (10.0, 200.0)


def test_the_cap_grows_with_the_calls_in_flight() -> None:
    bucket = Bucket(0.05, level=10.0)
    bucket.fill(20.0, 200)
    assert (bucket.level, bucket.reserve) == (20.0, 10.0)


def test_the_reserve_pays_only_in_a_surge() -> None:
    bucket = Bucket(0.05, level=0.25, reserve=2.0)
    assert not bucket.withdraw()
    assert bucket.withdraw(surge=True)
    assert (bucket.level, bucket.reserve) == (0.0, 1.25)


def test_a_cap_on_requests_counts_backups_that_won_too() -> None:
    bucket = Bucket(1.0, 0.1)
    sent = 0
    for _ in range(100):
        bucket.deposit(1)
        while bucket.withdraw():
            bucket.refund(1)
            sent += 1
    assert sent == 12
