"""Every key of the sandbox's script, one test or more for each; over bare sockets."""

import json
import socket
import time

import pytest
from raw_client import Response, ask, connect, entry, poll, request, send

TALK = {"first_token_s": 0.0, "token_s": 0.0, "tokens": 5}


def test_status_answers_in_the_dialects_error_format(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script={"status": 503}, case="c")
    assert answer.status == 503
    assert set(answer.json["error"]) == {"message", "type", "param", "code"}
    assert entry(hedgerow_sandbox, "c")["outcome"] == "failed"
    assert entry(hedgerow_sandbox, "c")["billed_usd"] == 0


def test_status_with_an_error_frame_sends_that_error(hedgerow_sandbox):
    error = {"code": "insufficient_quota", "message": "spent"}
    answer = ask(hedgerow_sandbox, script={"status": 429, "error_frame": {"error": error}}, stream=True)
    assert (answer.status, answer.json) == (429, {"error": error})


def test_headers_are_added_and_override(hedgerow_sandbox):
    script = TALK | {"headers": {"X-Extra": "1", "x-request-id": "mine", "content-type": "text/odd"}}
    answer = ask(hedgerow_sandbox, script=script)
    assert answer.headers["x-extra"] == "1"
    assert answer.headers["x-request-id"] == "mine"
    assert answer.headers["content-type"] == "text/odd"


def test_retry_after_is_a_header(hedgerow_sandbox):
    assert ask(hedgerow_sandbox, script={"status": 429, "retry_after": 1.5}).headers["retry-after"] == "1.5"


def test_a_streams_headers_leave_at_once(hedgerow_sandbox):
    with send(hedgerow_sandbox, script={"first_token_s": 3600}, stream=True) as sock:
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")


def test_before_headers_s_holds_them_back(hedgerow_sandbox):
    began_s = time.monotonic()
    with send(hedgerow_sandbox, script=TALK | {"before_headers_s": 0.3}, stream=True) as sock:
        assert sock.recv(1)
    assert time.monotonic() - began_s >= 0.3


def test_first_token_s_counts_from_arrival(hedgerow_sandbox):
    ask(hedgerow_sandbox, script=TALK | {"first_token_s": 0.3}, case="c", stream=True)
    ended = entry(hedgerow_sandbox, "c")
    assert ended["ended_s"] - ended["arrived_s"] >= 0.3


@pytest.mark.parametrize("stream", [False, True])
def test_await_arrivals_counts_the_times_from_a_later_arrival(hedgerow_sandbox, stream):
    scripts = [TALK | {"await_arrivals": 3, "text": "at last"}, TALK | {"first_token_s": 0.1, "token_s": 0.1}]
    asked = {"script": scripts, "case": "c", "stream": stream}
    with send(hedgerow_sandbox, **asked) as first:
        poll(lambda: hedgerow_sandbox.stats()["started"], 1)
        ask(hedgerow_sandbox, **asked)
        assert entry(hedgerow_sandbox, "c")["outcome"] is None
        ask(hedgerow_sandbox, **asked)
        assert Response(first).status == 200
        assert entry(hedgerow_sandbox, "c")["ended_s"] >= entry(hedgerow_sandbox, "c", 2)["arrived_s"]


def test_await_arrivals_heeds_a_client_that_leaves(hedgerow_sandbox):
    send(hedgerow_sandbox, script={"await_arrivals": 2}, case="c").close()
    poll(lambda: hedgerow_sandbox.stats()["disconnected"], 1)


def test_token_s_spaces_the_tokens(hedgerow_sandbox):
    script = {"first_token_s": 0.0, "token_s": 0.1, "tokens": 4}
    answer = ask(hedgerow_sandbox, script=script, case="c", stream=True)
    ended = entry(hedgerow_sandbox, "c")
    assert ended["ended_s"] - ended["arrived_s"] >= 0.3
    assert len(answer.chunks) >= 4


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_are_exact_and_about_four_characters(hedgerow_sandbox, stream):
    answer = ask(hedgerow_sandbox, script=TALK | {"tokens": 400}, case="c", stream=stream)
    text = "".join(answer.said()) if stream else answer.json["choices"][0]["message"]["content"]
    assert not stream or len(answer.said()) == 400
    assert len(text.split()) == 400
    assert len(text) / 4 == pytest.approx(400, rel=0.1)
    assert entry(hedgerow_sandbox, "c")["tokens"] == 400


def test_no_tokens_is_an_empty_answer(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script=TALK | {"tokens": 0}, stream=True)
    assert answer.said() == []
    assert answer.data[-1] == "[DONE]"


def test_text_is_said_as_it_is(hedgerow_sandbox):
    text = "Grüße 👋 an alle, und noch ein paar Worte."
    answer = ask(hedgerow_sandbox, script={"first_token_s": 0, "token_s": 0, "text": text}, stream=True)
    assert "".join(answer.said()) == text
    assert len(answer.said()) == -(-len(text) // 4)
    assert len(ask(hedgerow_sandbox, script=TALK | {"text": text}, stream=True).said()) == 5


@pytest.mark.parametrize("role_chunk", [True, False])
def test_role_chunk(hedgerow_sandbox, role_chunk):
    answer = ask(hedgerow_sandbox, script=TALK | {"role_chunk": role_chunk}, stream=True)
    assert ("role" in answer.deltas[0]) is role_chunk


def test_pings_come_before_the_first_token(hedgerow_sandbox):
    script = TALK | {"first_token_s": 0.3, "pings": {"every_s": 0.05, "count": 3}}
    answer = ask(hedgerow_sandbox, script=script, stream=True)
    assert answer.text.count(": ping\n\n") == 3
    assert answer.text.rindex(": ping") < answer.text.index('"content":"' + answer.said()[0])


def test_pings_stop_at_the_first_token(hedgerow_sandbox):
    script = TALK | {"first_token_s": 0.12, "pings": {"every_s": 0.05, "count": 30}}
    assert ask(hedgerow_sandbox, script=script, stream=True).text.count(": ping") == 2


@pytest.mark.parametrize("after", [0, 2, 5])
def test_stall_waits_after_so_many_tokens(hedgerow_sandbox, after):
    script = TALK | {"stall": {"after": after, "s": 3600}}
    with send(hedgerow_sandbox, script=script, case="c", stream=True) as sock:
        poll(lambda: entry(hedgerow_sandbox, "c")["tokens"], after)
        assert entry(hedgerow_sandbox, "c")["outcome"] is None
        assert sock.recv(65536)


def test_stall_comes_to_its_end(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script=TALK | {"stall": {"after": 2, "s": 0.2}}, case="c", stream=True)
    ended = entry(hedgerow_sandbox, "c")
    assert ended["ended_s"] - ended["arrived_s"] >= 0.2
    assert answer.data[-1] == "[DONE]"


@pytest.mark.parametrize("end", ["done", "eof"])
def test_error_frame_in_mid_stream(hedgerow_sandbox, end):
    error = {"type": "overloaded_error", "message": "too much"}
    script = TALK | {"end": end, "error_frame": {"after": 2, "error": error}}
    answer = ask(hedgerow_sandbox, script=script, case="c", stream=True)
    assert len(answer.said()) == 2
    assert answer.data[-2 if end == "done" else -1] == {"error": error}
    assert (answer.data[-1] == "[DONE]") is (end == "done")
    assert answer.ending == "end"
    assert entry(hedgerow_sandbox, "c")["outcome"] == "failed"


def test_error_frame_not_streamed_is_the_body_of_a_200(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script=TALK | {"error_frame": {"after": 2, "error": {"message": "m"}}}, case="c")
    assert (answer.status, answer.json) == (200, {"error": {"message": "m"}})
    assert entry(hedgerow_sandbox, "c")["outcome"] == "failed"


@pytest.mark.parametrize("cut", [0, 3, 5])
def test_cut_after_closes_without_the_end(hedgerow_sandbox, cut):
    answer = ask(hedgerow_sandbox, script=TALK | {"cut_after": cut}, case="c", stream=True)
    assert (answer.status, answer.ending) == (200, "fin")
    assert len(answer.said()) == cut
    ended = entry(hedgerow_sandbox, "c")
    assert (ended["outcome"], ended["tokens"]) == ("failed", cut)
    assert (ended["billed_usd"] > 0) is (cut > 0)


def test_cut_after_not_streamed(hedgerow_sandbox):
    nothing = ask(hedgerow_sandbox, script=TALK | {"cut_after": 0})
    assert (nothing.status, nothing.ending) == (None, "fin")
    half = ask(hedgerow_sandbox, script=TALK | {"cut_after": 3})
    assert (half.status, half.ending) == (200, "fin")
    assert 0 < len(half.body) < int(half.headers["content-length"])


@pytest.mark.parametrize("stream", [False, True])
def test_reset_sends_a_rst_instead_of_a_fin(hedgerow_sandbox, stream):
    script = TALK | {"first_token_s": 0.1, "cut_after": 0, "reset": True}
    assert ask(hedgerow_sandbox, script=script, stream=stream).ending == "rst"
    assert ask(hedgerow_sandbox, script=TALK | {"first_token_s": 0.1, "reset": True}, stream=stream).ending == "rst"


def test_half_open_never_closes_and_ignores_the_clients_fin(hedgerow_sandbox):
    script = TALK | {"cut_after": 2, "half_open": True}
    sock = send(hedgerow_sandbox, script=script, case="c", stream=True)
    poll(lambda: entry(hedgerow_sandbox, "c")["tokens"], 2)
    bytes_sent = entry(hedgerow_sandbox, "c")["bytes"]
    received = b""
    while received.count(b'"content":"') < 3:
        received += sock.recv(4096)
    sock.shutdown(socket.SHUT_WR)
    sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        sock.recv(4096)
    assert entry(hedgerow_sandbox, "c")["bytes"] == bytes_sent
    assert entry(hedgerow_sandbox, "c")["outcome"] is None
    assert hedgerow_sandbox.stats()["in_flight"] == 1
    hedgerow_sandbox.reset()
    sock.settimeout(30)
    with sock:
        assert sock.recv(1) == b""


def test_chunk_bytes_makes_every_write_so_small(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script=TALK | {"chunk_bytes": 1}, stream=True)
    assert {len(chunk) for chunk in answer.chunks} == {1}
    assert len(answer.said()) == 5
    assert max(map(len, ask(hedgerow_sandbox, script=TALK | {"chunk_bytes": 7}, stream=True).chunks)) == 7


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_end(hedgerow_sandbox, line_end):
    body = ask(hedgerow_sandbox, script=TALK | {"line_end": line_end}, stream=True).body
    assert body.endswith(f"data: [DONE]{line_end}{line_end}".encode())
    assert body.count(b"\n") == body.count(line_end.encode()) * line_end.count("\n")


def test_without_final_newline_the_last_event_lacks_its_end(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script=TALK | {"final_newline": False}, stream=True)
    assert answer.body.endswith(b"data: [DONE]")
    assert answer.ending == "end"


def test_eof_ends_cleanly_without_finish_or_marker(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script=TALK | {"end": "eof"}, case="c", stream=True)
    assert answer.ending == "end"
    assert answer.data[-1]["choices"][0]["delta"] == {"content": answer.said()[-1]}
    assert len(answer.said()) == 5
    assert entry(hedgerow_sandbox, "c")["outcome"] == "completed"


def test_eof_with_a_finish_reason_lacks_only_the_marker(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script=TALK | {"end": "eof", "finish_reason": "stop"}, stream=True)
    assert answer.data[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_finish_reason(hedgerow_sandbox, stream):
    answer = ask(hedgerow_sandbox, script=TALK | {"finish_reason": "content_filter"}, stream=stream)
    final = answer.data[-2] if stream else answer.json
    assert final["choices"][0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize("stream", [False, True])
def test_ignore_disconnect_goes_on_to_the_end_and_bills_in_full(hedgerow_sandbox, stream):
    script = {"first_token_s": 0.05, "token_s": 0.05, "tokens": 8, "ignore_disconnect": True}
    sock = send(hedgerow_sandbox, script=script, case="c", stream=stream)
    poll(lambda: hedgerow_sandbox.stats()["in_flight"], 1)
    sock.close()
    poll(lambda: entry(hedgerow_sandbox, "c")["outcome"], "completed")
    ended = entry(hedgerow_sandbox, "c")
    assert ended["tokens"] == 8
    assert ended["billed_usd"] == pytest.approx((ended["input_tokens"] * 1.0 + 8 * 4.0) / 1e6)


@pytest.mark.parametrize("stream", [False, True])
def test_raw_body_is_sent_verbatim(hedgerow_sandbox, stream):
    raw = 'data: {"odd"\r\r\n: ü\n\n'
    answer = ask(hedgerow_sandbox, script={"first_token_s": 0, "raw_body": raw}, case="c", stream=stream)
    assert answer.text == raw
    assert answer.ending == "end"
    assert entry(hedgerow_sandbox, "c")["outcome"] == "completed"
    assert ask(hedgerow_sandbox, script={"raw_body": raw, "status": 500}, stream=stream).text == raw


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("calls", [1, 3])
def test_tool_calls_assemble_to_valid_json(hedgerow_sandbox, stream, calls):
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {}}}]
    script = TALK | {"tokens": 30, "tool_calls": calls}
    answer = ask(hedgerow_sandbox, script=script, case="c", stream=stream, tools=tools)
    if stream:
        assembled = {}
        for delta in answer.said("tool_calls"):
            assembled.setdefault(delta[0]["index"], []).append(delta[0]["function"])
        names = [parts[0]["name"] for parts in assembled.values()]
        arguments = ["".join(part["arguments"] for part in parts) for parts in assembled.values()]
        assert answer.data[-2]["choices"][0]["finish_reason"] == "tool_calls"
    else:
        functions = [call["function"] for call in answer.json["choices"][0]["message"]["tool_calls"]]
        names = [function["name"] for function in functions]
        arguments = [function["arguments"] for function in functions]
    assert names == ["look_up"] * calls
    assert all(isinstance(json.loads(text), dict) for text in arguments)
    assert entry(hedgerow_sandbox, "c")["tokens"] == 30


def test_text_with_tool_calls_is_their_arguments(hedgerow_sandbox):
    answer = ask(hedgerow_sandbox, script=TALK | {"tool_calls": 1, "text": '{"city":"Paris"}'})
    assert answer.json["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"city":"Paris"}'


@pytest.mark.parametrize("stream", [False, True])
def test_n_is_the_requests_unless_scripted(hedgerow_sandbox, stream):
    for script, asked, expected in ((TALK, 2, 2), (TALK | {"n": 3}, 2, 3)):
        answer = ask(hedgerow_sandbox, script=script, case=f"c{expected}", stream=stream, n=asked)
        datas = answer.data[:-1] if stream else [answer.json]
        assert {choice["index"] for data in datas for choice in data["choices"]} == set(range(expected))
        assert entry(hedgerow_sandbox, f"c{expected}")["tokens"] == 5 * expected


@pytest.mark.parametrize("stream", [False, True])
def test_refusal_takes_the_place_of_content(hedgerow_sandbox, stream):
    answer = ask(hedgerow_sandbox, script={"first_token_s": 0, "refusal": "I would rather not."}, stream=stream)
    if stream:
        assert "".join(answer.said("refusal")) == "I would rather not."
        assert not answer.said()
    else:
        message = answer.json["choices"][0]["message"]
        assert (message["refusal"], message["content"]) == ("I would rather not.", None)


@pytest.mark.parametrize("stream", [False, True])
def test_reasoning_tokens_come_first_and_are_counted(hedgerow_sandbox, stream):
    script = TALK | {"reasoning_tokens": 7}
    options = {"stream_options": {"include_usage": True}} if stream else {}
    answer = ask(hedgerow_sandbox, script=script, case="c", stream=stream, **options)
    usage = answer.data[-2]["usage"] if stream else answer.json["usage"]
    assert usage["completion_tokens"] == 12
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 7
    if stream:
        assert len(answer.said("reasoning_content")) == 7
        assert answer.text.rindex("reasoning_content") < answer.text.index('"content":"' + answer.said()[0] + '"')
    else:
        assert len(answer.json["choices"][0]["message"]["reasoning_content"].split()) == 7


def test_usage_in_a_stream_only_if_asked(hedgerow_sandbox):
    assert not any(data.get("usage") for data in ask(hedgerow_sandbox, script=TALK, stream=True).data[:-1])
    asked = ask(hedgerow_sandbox, script=TALK, stream=True, stream_options={"include_usage": True})
    assert asked.data[-2]["choices"] == []
    assert asked.data[-2]["usage"]["completion_tokens"] == 5


def test_usage_false_is_never_reported(hedgerow_sandbox):
    script = TALK | {"usage": False}
    assert "usage" not in ask(hedgerow_sandbox, script=script).json
    streamed = ask(hedgerow_sandbox, script=script, stream=True, stream_options={"include_usage": True})
    assert not any(data.get("usage") for data in streamed.data[:-1])


@pytest.mark.parametrize("usage", [{"cached": 3, "input_tokens": 90}, {"cached_tokens": 3, "input": 90}])
def test_usage_values_replace_the_counted_ones(hedgerow_sandbox, usage):
    reported = ask(hedgerow_sandbox, script=TALK | {"usage": usage}).json["usage"]
    assert reported["prompt_tokens"] == 90
    assert reported["prompt_tokens_details"]["cached_tokens"] == 3
    assert reported["completion_tokens"] == 5


def test_service_tier_is_the_requests_unless_scripted(hedgerow_sandbox):
    assert ask(hedgerow_sandbox, script=TALK).json["service_tier"] == "default"
    assert ask(hedgerow_sandbox, script=TALK, service_tier="priority").json["service_tier"] == "priority"
    script = TALK | {"service_tier": "default"}
    answer = ask(hedgerow_sandbox, script=script, case="c", service_tier="priority")
    assert answer.json["service_tier"] == entry(hedgerow_sandbox, "c")["service_tier"] == "default"


def test_arrivals_take_the_scripts_in_turn_and_the_last_repeats(hedgerow_sandbox):
    script = [TALK | {"text": text} for text in ("one", "two", "three")]
    said = ["".join(ask(hedgerow_sandbox, script=script, case="c", stream=True).said()) for _ in range(5)]
    assert said == ["one", "two", "three", "three", "three"]
    assert "".join(ask(hedgerow_sandbox, script=script, case="other", stream=True).said()) == "one"


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ([{"tokenz": 5}], "tokenz"),
        ([{"tokens": -1}], "tokens"),
        ([{"stall": {"after": 1, "seconds": 3}}], "stall.seconds"),
        ([{"end": "never"}], "end"),
        ([{"headers": {"x": "a\r\nb"}}], "headers"),
        ([], "x-sandbox-script"),
        ([5], "5"),
    ],
)
def test_a_script_that_cannot_be_is_refused_by_name(hedgerow_sandbox, script, named):
    with connect(hedgerow_sandbox) as sock:
        sock.sendall(request(script=script, case="c"))
        answer = Response(sock)
    assert answer.status == 400
    assert named in answer.json["error"]["message"]
    assert hedgerow_sandbox.stats()["started"] == 0
