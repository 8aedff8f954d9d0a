"""The real openai SDK against the sandbox."""

import json
import math

import openai
import pytest
from raw_client import entry, poll


@pytest.fixture
async def client(hedgerow_sandbox):
    async with openai.AsyncOpenAI(base_url=f"{hedgerow_sandbox.url}/v1", api_key="x", max_retries=0) as client:
        yield client


def asked(script=None, case="c", **more):
    headers = {"x-sandbox-case": case}
    if script is not None:
        headers["x-sandbox-script"] = json.dumps([script])
    return {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "extra_headers": headers} | more


async def test_a_whole_answer(client):
    answer = await client.chat.completions.create(**asked({"tokens": 9}))
    assert len(answer.choices[0].message.content.split()) == 9
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == 9


async def test_a_stream(client):
    stream = await client.chat.completions.create(
        **asked({"tokens": 9, "reasoning_tokens": 2, "n": 2}), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    texts = ["", ""]
    for chunk in chunks:
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert [len(text.split()) for text in texts] == [9, 9]
    assert chunks[-1].usage.completion_tokens == 22
    assert chunks[-1].usage.completion_tokens_details.reasoning_tokens == 4


async def test_streamed_tool_calls_are_assembled_by_the_sdk(client):
    async with client.chat.completions.stream(**asked({"tokens": 40, "tool_calls": 2})) as stream:
        completion = await stream.get_final_completion()
    calls = completion.choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["sandbox_tool"] * 2
    assert all(json.loads(call.function.arguments) for call in calls)


@pytest.mark.parametrize("encoding", [{}, {"encoding_format": "float"}], ids=["base64", "float"])
async def test_embeddings_are_unit_vectors_of_the_text(client, encoding):
    made = [
        await client.embeddings.create(model="e", input=["one", "two"], dimensions=64, **encoding) for _ in range(2)
    ]
    first, second = (item.embedding for item in made[0].data)
    assert math.hypot(*first) == pytest.approx(1, abs=1e-5)
    assert first != second
    assert made[1].data[0].embedding == first
    assert made[0].usage.prompt_tokens == 2


async def test_models_are_listed(client):
    assert [model.id async for model in client.models.list()]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (529, openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
async def test_statuses_become_the_sdks_errors(client, status, kind, stream):
    with pytest.raises(kind) as caught:
        await client.chat.completions.create(**asked({"status": status}), stream=stream)
    assert caught.value.status_code == status


async def test_an_error_in_mid_stream_is_raised_by_the_sdk(client):
    script = {"tokens": 9, "error_frame": {"after": 3, "error": {"message": "out of breath", "type": "server_error"}}}
    stream = await client.chat.completions.create(**asked(script), stream=True)
    with pytest.raises(openai.APIError, match="out of breath"):
        async for _ in stream:
            pass


async def test_closing_a_stream_is_seen_as_a_disconnect(client, hedgerow_sandbox):
    script = {"tokens": 9, "token_s": 0, "stall": {"after": 3, "s": 3600}}
    stream = await client.chat.completions.create(**asked(script), stream=True)
    said = 0
    async for chunk in stream:
        said += bool(chunk.choices[0].delta.content)
        if said == 3:
            break
    await stream.close()
    poll(lambda: entry(hedgerow_sandbox, "c")["outcome"], "disconnected")
    assert entry(hedgerow_sandbox, "c")["tokens"] == 3


async def test_the_stall_of_an_unscripted_call_is_the_profiles(hedgerow_sandbox_factory, tmp_path):
    profile = tmp_path / "stalling.toml"
    profile.write_text(
        "first_token_s = 0.01\nstall_max_s = 3600\noutput_median_tokens = 10\ntoken_s = 0\n"
        "stall = { chance = 1, scale_s = 1800, alpha = 1 }\n[prices]\ninput_usd_per_million = 1\noutput_usd_per_million = 1\n"
    )
    sandbox = hedgerow_sandbox_factory(profile=str(profile))
    async with openai.AsyncOpenAI(base_url=sandbox.url, api_key="x", max_retries=0) as client:
        stream = await client.chat.completions.create(**asked(), stream=True)
        await anext(stream)
        poll(lambda: entry(sandbox, "c")["tokens"] > 0)
        assert entry(sandbox, "c")["outcome"] is None
        await stream.close()
