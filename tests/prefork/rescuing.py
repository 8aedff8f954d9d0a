"""What the servers of these tests share: one hedged client, made when they load and used once before they fork; and an end that
comes with whoever started them."""

import os
import select
import signal
import sys
import threading
from typing import Any

from openai import OpenAI
from tests.sdk.racing import QUICK, scripted

import hedgerow
from hedgerow.testing.loopback import LoopbackGuard

__all__ = ["LONGEST_S", "SANDBOX", "STORE", "Rescuer", "end_with_starter"]

SANDBOX, STORE = (
    "HEDGEROW_TEST_SANDBOX",
    "HEDGEROW_TEST_STORE",
)  # in the environment: the sandbox's URL, where events go
LONGEST_S = 150.0
NEVER_ANSWERS = {"first_token_s": 600.0}


class Rescuer:
    """A hedged client as a module holds it. Loading it uses it: the process that forks has its loop, thread and connections."""

    def __init__(self) -> None:
        LoopbackGuard().install()
        client = OpenAI(base_url=f"{os.environ[SANDBOX]}/v1", api_key="k", max_retries=0)
        policy = hedgerow.Policy(trigger="first_token", delay=0.2, budget="off", max_backups=1)
        self.client = hedgerow.hedged(client, policy=policy, events=os.environ[STORE])
        self.loaded_in = os.getpid()
        self.rescue("before the fork")

    def rescue(self, case: str) -> dict[str, Any]:
        """One call whose primary is never answered: what its backup said, and what is known here of the calls so far."""
        answer = self.client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "hi"}],
            extra_headers=scripted(case, NEVER_ANSWERS, {**QUICK, "text": "rescued"}),
        )
        stats = hedgerow.hedger_of(self.client).stats()
        counts = {name: stats[name] for name in ("requests", "backups", "backup_wins")}
        return {"text": answer.choices[0].message.content, "pid": os.getpid(), "loaded_in": self.loaded_in, **counts}


def end_with_starter() -> None:
    """Kill this process and those it started when standard input ends, which is when the test has, or after some minutes."""
    group = os.getpgrp()

    def watch() -> None:
        select.select([sys.stdin], [], [], LONGEST_S)
        os.killpg(group, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
