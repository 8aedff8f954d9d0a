"""`hedgerow demo`: the same calls in five arms against a sandbox on this machine, and what came of it."""

import asyncio
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hedgerow.cli.arms_table import arms_table, priority_note, proof_line, verdict
from hedgerow.cli.extras import needing
from hedgerow.clock import ScaledClock
from hedgerow.errors import HedgerowError, SettingError
from hedgerow.replay.arms import BASELINE, DEMO_ARMS
from hedgerow.replay.books import SandboxBooks
from hedgerow.replay.result import Comparison, compare
from hedgerow.replay.runner import case_of, run_arms
from hedgerow.sandbox.profile_files import load_profile
from hedgerow.sandbox.profiles import Profile
from hedgerow.sandbox.replayed import load_calls
from hedgerow.testing.process import SandboxProcess

__all__ = ["demo"]

# Measured on two cores: docs/reference/demo.md.
USUAL_TIME_SCALE = 0.2
USUAL_CONCURRENCY = 30
# Every call may open three connections, of the thousand that an SDK client allows.
MOST_CONCURRENCY = 256


def demo(
    requests: Annotated[int, typer.Option(min=1, help="calls per arm")] = 1000,
    seed: Annotated[int, typer.Option(help="of the provider's luck, the arms' order and the intervals")] = 1,
    profile: Annotated[
        str, typer.Option(help="openai-like, gemini-like, search-like, real or FILE.toml; also the prices")
    ] = "real",
    replay: Annotated[str | None, typer.Option(help="FILE.csv: rows of real calls instead of draws")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="a running sandbox instead of one of our own; needs --time-scale")
    ] = None,
    time_scale: Annotated[
        float | None, typer.Option(help=f"real seconds per provider second  [default: {USUAL_TIME_SCALE}]")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="calls in flight, over all arms")] = USUAL_CONCURRENCY,
    as_json: Annotated[bool, typer.Option("--json", help="the result as JSON on stdout")] = False,
) -> None:
    """Hedging shown offline: one provider, the same calls singly, at a dearer tier, twice, after the p95 and hedged."""
    try:
        plan = _Plan(
            requests=requests,
            seed=seed,
            profile=load_profile(profile),
            profile_name=profile,
            replay=replay,
            base_url=base_url,
            time_scale=_time_scale(time_scale, base_url, replay),
            concurrency=concurrency,
        )
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None
    # Whoever ends us by SIGTERM does not want an orphaned sandbox either.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        comparison = asyncio.run(_run(plan))
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None
    except HedgerowError as error:
        print(f"hedgerow demo: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    _show(comparison, plan, as_json=as_json)
    if all(arm.errors == arm.n for arm in comparison.arms):
        print("hedgerow demo: every call failed", file=sys.stderr)
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    requests: int
    seed: int
    profile: Profile
    profile_name: str
    replay: str | None
    base_url: str | None
    time_scale: float
    concurrency: int

    def __post_init__(self) -> None:
        if not len(DEMO_ARMS) <= self.concurrency <= MOST_CONCURRENCY:
            raise SettingError("concurrency", self.concurrency, f"{len(DEMO_ARMS)} to {MOST_CONCURRENCY} calls")
        if not 0 < self.time_scale <= 1000:
            raise SettingError("time_scale", self.time_scale, "above 0 to 1000 real seconds per provider second")
        if self.replay is not None:
            load_calls(Path(self.replay))


def _time_scale(given: float | None, base_url: str | None, replay: str | None) -> float:
    if base_url is not None and given is None:
        raise SettingError("time_scale", given, "the --time-scale the sandbox at --base-url was started with")
    if base_url is not None and replay is not None:
        raise SettingError("replay", replay, "nothing with --base-url", fix="give it to the sandbox there")
    return USUAL_TIME_SCALE if given is None else given


async def _run(plan: _Plan) -> Comparison:
    with needing("demo", "cli"):
        from hedgerow.cli.sdk_calls import ArmClient
    clock = ScaledClock(plan.time_scale)
    async with AsyncExitStack() as stack:
        books = await stack.enter_async_context(SandboxBooks(plan.base_url or _start_sandbox(plan, stack)))
        await _refuse_used(books)
        clients = {arm.name: ArmClient(arm, f"{books.url}/v1", clock) for arm in DEMO_ARMS}
        with _progress(plan) as progress:
            calls = await run_arms(
                {name: client.send for name, client in clients.items()},
                requests=plan.requests,
                concurrency=plan.concurrency,
                seed=plan.seed,
                clock=clock,
                progress=progress,
            )
        cases = await books.settled_cases()
        for client in clients.values():
            await client.close()
    ours = {case_of(arm, number) for arm in calls for number in range(plan.requests)}
    return compare(
        calls,
        {case: attempts for case, attempts in cases.items() if case in ours},
        {name: client.backups for name, client in clients.items()},
        plan.profile.prices,
        against=BASELINE,
        seed=plan.seed,
    )


def _start_sandbox(plan: _Plan, stack: AsyncExitStack) -> str:
    process = SandboxProcess(profile=plan.profile_name, replay=plan.replay, seed=plan.seed, time_scale=plan.time_scale)
    return stack.enter_context(process).url


async def _refuse_used(books: SandboxBooks) -> None:
    """Draws depend on how often a case has arrived: a second run would meet other luck, and find the first one's bill."""
    try:
        cases = await books.cases()
    except HedgerowError as error:
        raise SettingError("base_url", books.url, "a running sandbox", fix=str(error)) from None
    if any(case_of(arm.name, 0) in cases for arm in DEMO_ARMS):
        fix = f"POST {books.url}/_sandbox/reset, or start it anew"
        raise SettingError("base_url", books.url, "a sandbox that has not served this demo before", fix=fix)


@contextmanager
def _progress(plan: _Plan) -> Generator[Callable[[str], object]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # Four times a second: drawing must not disturb what is measured.
    with Progress(*columns, console=console, refresh_per_second=4, transient=True) as bars:
        tasks = {arm.name: bars.add_task(arm.name, total=plan.requests) for arm in DEMO_ARMS}
        yield lambda arm: bars.advance(tasks[arm])


def _show(comparison: Comparison, plan: _Plan, *, as_json: bool) -> None:
    if as_json:
        print(orjson.dumps(comparison.as_dict(), option=orjson.OPT_INDENT_2).decode())
        return
    base_cost_usd = next(arm.cost.high_usd for arm in comparison.arms if arm.arm == BASELINE)
    console = Console(highlight=False, soft_wrap=True)
    console.print(arms_table(comparison, base_cost_usd))
    console.print(priority_note(plan.profile, replayed=plan.replay is not None))
    console.print(proof_line(comparison.proof))
    console.print(verdict(comparison, DEMO_ARMS[-1].name, base_cost_usd))
