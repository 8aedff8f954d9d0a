"""Runs a sandbox as a process of its own: says where it listens, ends cleanly on SIGINT and SIGTERM."""

import asyncio
import signal
import sys
from functools import partial
from types import FrameType

from hedgerow.errors import HedgerowError, SettingError
from hedgerow.sandbox.server import Sandbox, SandboxSettings

__all__ = ["serve_until_told"]


def serve_until_told(settings: SandboxSettings) -> int:
    """Serves until SIGINT or SIGTERM; prints `listening on URL` on stderr.

    The exit code: 0, 2 if a profile or file cannot be used, 1 if it cannot start for another reason.
    """
    try:
        asyncio.run(_serve(settings))
    except (HedgerowError, OSError) as error:
        print(f"hedgerow sandbox: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingError) else 1
    except KeyboardInterrupt:
        # Where the loop takes no signal handlers (Windows) Ctrl-C ends up here.
        return 0
    return 0


async def _serve(settings: SandboxSettings) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, told.set)
        except NotImplementedError:
            signal.signal(number, partial(_tell, loop, told))
    async with Sandbox(settings) as sandbox:
        print(f"listening on {sandbox.url}", file=sys.stderr, flush=True)
        await told.wait()


def _tell(loop: asyncio.AbstractEventLoop, told: asyncio.Event, number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    loop.call_soon_threadsafe(told.set)
