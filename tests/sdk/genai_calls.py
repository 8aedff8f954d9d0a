"""Calls through Google's SDK for tests that are about that SDK alone."""

import json
from typing import Any

from google import genai

import hedgerow
from hedgerow.testing.process import SandboxProcess

MODEL = "gemini-2.5-flash"
LONG = {"first_token_s": 0.01, "tokens": 500, "token_s": 0.05}
SOON = hedgerow.Policy(trigger="first_token", delay=0.05, budget="off")


def plain(sandbox: SandboxProcess, **options: Any) -> genai.Client:
    """An unhedged client of the sandbox; options are those of HttpOptions."""
    return genai.Client(api_key="secret-key", http_options={"base_url": sandbox.url, **options})


def racing(sandbox: SandboxProcess, *, backup: Any = None, **settings: Any) -> genai.Client:
    """A hedged one that backs a call up after 50 ms, whatever it costs, unless the settings say otherwise."""
    policy = hedgerow.Policy(**{"trigger": "first_token", "delay": 0.05, "budget": "off", **settings})
    return hedgerow.hedged(plain(sandbox), policy=policy, backup=backup)


def asked(case: str, *attempts: dict[str, Any], **config: Any) -> dict[str, Any]:
    """The arguments of a call that steers its own fate; one script per arrival. config: GenerateContentConfig's fields."""
    headers = {"x-sandbox-case": case, "x-sandbox-script": json.dumps(list(attempts))}
    return {"model": MODEL, "contents": "hi", "config": {"http_options": {"headers": headers}, **config}}
