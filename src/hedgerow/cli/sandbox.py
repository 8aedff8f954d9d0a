"""`hedgerow sandbox`: the loopback provider."""

from typing import Annotated, Literal

import typer

from hedgerow.errors import SettingError
from hedgerow.sandbox.server import SandboxSettings
from hedgerow.sandbox.serving import serve_until_told

__all__ = ["sandbox"]


def sandbox(
    port: Annotated[int, typer.Option(help="0 = any free port")] = 0,
    profile: Annotated[
        str, typer.Option(help="openai-like, gemini-like, search-like, real or FILE.toml")
    ] = "openai-like",
    replay: Annotated[
        str | None, typer.Option(help="FILE.csv: rows of real calls in place of the profile's draws")
    ] = None,
    seed: Annotated[int, typer.Option(help="draws depend on it, the case id and the arrival number only")] = 1,
    time_scale: Annotated[float, typer.Option(help="real seconds per provider second")] = 1.0,
    bill: Annotated[
        Literal["so_far", "full", "none"], typer.Option(help="what a disconnected request is charged")
    ] = "so_far",
    tls: Annotated[bool, typer.Option("--tls", help="https with a self-signed certificate")] = False,
) -> None:
    """A provider on the loopback: dialects, latency profiles or rows of real calls, scripted faults, a billing meter."""
    try:
        settings = SandboxSettings(
            port=port, profile=profile, replay=replay, seed=seed, time_scale=time_scale, bill=bill, tls=tls
        )
    except SettingError as error:
        raise typer.BadParameter(str(error)) from None
    raise typer.Exit(serve_until_told(settings))
