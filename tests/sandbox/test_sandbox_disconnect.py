"""The sandbox sees at once that a client has gone, at every moment of an answer, and charges what its bill says."""

import socket
import ssl

import pytest
from raw_client import Response, ask, entry, leave_with_reset, poll, request, send

from hedgerow.testing.process import QUICK_PROFILE

NEVER_S = 3600
MOMENTS = {
    "before the headers": ({"before_headers_s": NEVER_S}, True, 0),
    "before the first token": ({"first_token_s": NEVER_S}, True, 0),
    "between pings": ({"first_token_s": NEVER_S, "pings": {"every_s": 0.02, "count": 9999}}, True, 0),
    "in mid-stream": ({"first_token_s": 0, "token_s": 0, "tokens": 50, "stall": {"after": 7, "s": NEVER_S}}, True, 7),
    "not streamed": ({"first_token_s": NEVER_S}, False, 0),
}


@pytest.mark.parametrize("leave", [socket.socket.close, leave_with_reset], ids=["fin", "rst"])
@pytest.mark.parametrize(("script", "stream", "tokens"), MOMENTS.values(), ids=MOMENTS)
def test_a_client_that_leaves_is_seen(hedgerow_sandbox, leave, script, stream, tokens):
    sock = send(hedgerow_sandbox, script=script, case="c", stream=stream)
    poll(lambda: hedgerow_sandbox.stats()["in_flight"], 1)
    poll(lambda: entry(hedgerow_sandbox, "c")["tokens"], tokens)
    leave(sock)
    poll(lambda: hedgerow_sandbox.stats()["in_flight"], 0)
    ended = entry(hedgerow_sandbox, "c")
    assert (ended["outcome"], ended["tokens"]) == ("disconnected", tokens)
    assert ended["ended_s"] >= ended["arrived_s"]
    assert hedgerow_sandbox.stats()["disconnected"] == 1


def test_a_client_that_leaves_over_tls_is_seen(hedgerow_sandbox_factory):
    sandbox = hedgerow_sandbox_factory(tls=True)
    context = ssl.create_default_context(cadata=sandbox.certificate())
    host, port = sandbox.url.removeprefix("https://").split(":")
    with context.wrap_socket(socket.create_connection((host, int(port)), timeout=30), server_hostname=host) as sock:
        sock.sendall(request(script={"first_token_s": NEVER_S}, case="c", stream=True))
        poll(lambda: sandbox.stats()["in_flight"], 1)
    poll(lambda: entry(sandbox, "c")["outcome"], "disconnected")


def test_a_client_that_does_not_read_holds_its_answer_back(hedgerow_sandbox):
    script = {"first_token_s": 0, "token_s": 0, "tokens": 100_000}
    sock = send(hedgerow_sandbox, script=script, case="c", stream=True)
    poll(lambda: entry(hedgerow_sandbox, "c")["tokens"] > 0)
    assert entry(hedgerow_sandbox, "c")["outcome"] is None
    sock.close()
    poll(lambda: entry(hedgerow_sandbox, "c")["outcome"], "disconnected")
    assert entry(hedgerow_sandbox, "c")["tokens"] < 100_000


@pytest.mark.parametrize(("bill", "tokens", "free"), [("so_far", 7, False), ("full", 50, False), ("none", 0, True)])
def test_the_bill_of_a_disconnected_request(hedgerow_sandbox_factory, bill, tokens, free):
    sandbox = hedgerow_sandbox_factory(bill=bill)
    sock = send(sandbox, script=MOMENTS["in mid-stream"][0], case="c", stream=True)
    poll(lambda: sandbox.stats()["cases"].get("c", [{"tokens": 0}])[0]["tokens"], 7)
    sock.close()
    poll(lambda: entry(sandbox, "c")["outcome"], "disconnected")
    ended = entry(sandbox, "c")
    assert ended["planned_tokens"] == 50
    expected_usd = 0.0 if free else (ended["input_tokens"] * 1.0 + tokens * 4.0) / 1e6
    assert ended["billed_usd"] == pytest.approx(expected_usd)
    assert sandbox.stats()["billed_usd"] == pytest.approx(expected_usd)


@pytest.mark.parametrize(("tier", "ratio"), [("priority", 1.75), ("flex", 0.5), ("default", 1.0)])
def test_tiers_multiply_the_price(hedgerow_sandbox, tier, ratio):
    ask(hedgerow_sandbox, script={"tokens": 10}, case="c", service_tier=tier)
    ended = entry(hedgerow_sandbox, "c")
    assert ended["billed_usd"] == pytest.approx(ratio * (ended["input_tokens"] * 1.0 + 10 * 4.0) / 1e6)


def test_totals_are_the_sum_of_the_cases(hedgerow_sandbox):
    for number in range(5):
        ask(hedgerow_sandbox, case=f"c/{number}", stream=True)
    stats = hedgerow_sandbox.stats()
    entries = [one for case in stats["cases"].values() for one in case]
    assert stats["started"] == stats["completed"] == len(entries) == 5
    assert stats["output_tokens"] == sum(one["tokens"] for one in entries)
    assert stats["input_tokens"] == sum(one["input_tokens"] for one in entries)
    assert stats["billed_usd"] == pytest.approx(sum(one["billed_usd"] for one in entries))
    assert set(stats) == {
        *(
            "now_s",
            "started",
            "completed",
            "disconnected",
            "in_flight",
            "input_tokens",
            "output_tokens",
            "billed_usd",
            "cases",
        )
    }


def test_stats_can_list_one_case_only(hedgerow_sandbox):
    for case in ("c", "d"):
        ask(hedgerow_sandbox, case=case)
    assert set(hedgerow_sandbox.stats()["cases"]) == {"c", "d"}
    assert {case: len(entries) for case, entries in hedgerow_sandbox.stats("d")["cases"].items()} == {"d": 1}
    assert hedgerow_sandbox.stats("nobody's")["cases"] == {"nobody's": []}


def test_stats_say_when_an_answer_goes_on_unless_it_awaits_others(hedgerow_sandbox):
    with send(hedgerow_sandbox, script=[{"first_token_s": 500.0}, {"await_arrivals": 9}], case="c") as first:
        poll(lambda: len(hedgerow_sandbox.stats("c")["cases"]["c"]), 1)
        with send(hedgerow_sandbox, script=[{}, {"await_arrivals": 9}], case="c"):
            poll(lambda: len(hedgerow_sandbox.stats("c")["cases"]["c"]), 2)
            timed, awaiting = hedgerow_sandbox.stats("c")["cases"]["c"]
        assert timed["due_s"] - timed["arrived_s"] >= 500.0
        assert awaiting["due_s"] is None
        first.close()
    poll(lambda: hedgerow_sandbox.stats()["in_flight"], 0)
    assert [each["due_s"] for each in hedgerow_sandbox.stats()["cases"]["c"]] == [None, None]


def test_times_scale_and_stats_tell_unscaled_seconds(hedgerow_sandbox_factory):
    sandbox = hedgerow_sandbox_factory(time_scale=0.01, profile=QUICK_PROFILE)
    ask(sandbox, script={"first_token_s": 20, "token_s": 1, "tokens": 11}, case="c", stream=True)
    ended = entry(sandbox, "c")
    assert ended["ended_s"] - ended["arrived_s"] >= 30


def test_reset_forgets_and_drops_what_is_under_way(hedgerow_sandbox):
    with send(hedgerow_sandbox, script={"first_token_s": NEVER_S}, case="c", stream=False) as sock:
        poll(lambda: hedgerow_sandbox.stats()["in_flight"], 1)
        hedgerow_sandbox.reset()
        assert Response(sock).ending in ("fin", "rst")
    stats = hedgerow_sandbox.stats()
    assert stats.pop("cases") == {}
    assert stats.pop("now_s") > 0
    assert not any(stats.values())
