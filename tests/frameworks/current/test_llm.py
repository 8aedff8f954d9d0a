"""Simon Willison's llm, as the command that its users type, through the gateway."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.frameworks.conftest import ANSWERS, PATIENCE_S, SAID, Way
from tests.frameworks.page import ADDRESS, block
from tests.gateway.running import GatewayProcess

NAME = "llm"
TOOL = "def look_up_weather(city: str, days: int) -> str:\n    return f'{city} {days}'\n"


def run_llm(folder: Path, gateway: GatewayProcess, *options: str) -> str:
    models = block(NAME, "gateway").replace(ADDRESS, gateway.url)
    (folder / "extra-openai-models.yaml").write_text(models)
    command = [sys.executable, "-m", "llm", "prompt", "hi", "-m", "hedged-mini", *options]
    where = os.environ | {"LLM_USER_PATH": str(folder)}
    done = subprocess.run(command, env=where, capture_output=True, text=True, timeout=PATIENCE_S * 2, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("options", [[], ["--no-stream"]], ids=["streamed", "whole"])
async def test_a_prompt_is_rescued(
    gateway: Way, gateway_process: GatewayProcess, tmp_path: Path, options: list[str]
) -> None:
    gateway.hang_then()
    assert run_llm(tmp_path, gateway_process, *options) == SAID
    await gateway.assert_rescued()


async def test_both_turns_of_a_tool_call_are_rescued(
    gateway: Way, gateway_process: GatewayProcess, tmp_path: Path
) -> None:
    gateway.hang_then({"first_token_s": 0.01, "tool_calls": 1}, ANSWERS)
    assert run_llm(tmp_path, gateway_process, "--functions", TOOL) == SAID
    await gateway.assert_rescued(2)
