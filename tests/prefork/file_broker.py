"""A Celery application whose broker and results are files of one folder."""

import os
import threading
from pathlib import Path
from typing import Any

from celery import Celery

__all__ = ["FOLDER", "TASK", "Asker", "queue_of_environment"]

FOLDER = "HEDGEROW_TEST_QUEUE"  # in the environment
TASK = "rescue"


class Asker:
    """Who wants tasks done. For any number of threads; a context manager."""

    def __init__(self, folder: Path) -> None:
        self._outbox, self._inbox = folder / "outbox", folder / "inbox"
        self._queue, self._posting = _queue(folder, reads="answers", writes="outbox"), threading.Lock()

    def ask(self, case: str, patience_s: float) -> dict[str, Any]:
        """What the task came to. The worker would read a message while it is being written, so it is written elsewhere."""
        with self._posting:
            result = self._queue.send_task(TASK, [case])
            for message in self._outbox.iterdir():
                message.rename(self._inbox / message.name)
        return result.get(patience_s, interval=0.02)

    def __enter__(self) -> "Asker":
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.close()


def queue_of_environment() -> Celery:
    """The worker's."""
    return _queue(Path(os.environ[FOLDER]), reads="inbox", writes="answers")


def _queue(folder: Path, *, reads: str, writes: str) -> Celery:
    for name in ("inbox", "outbox", "answers", "control", "results"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Celery(
        "rescuing",
        broker="filesystem://",
        backend=f"file://{folder / 'results'}",
        broker_transport_options={
            "data_folder_in": str(folder / reads),
            "data_folder_out": str(folder / writes),
            "control_folder": str(folder / "control"),
            "polling_interval": 0.05,
        },
        set_as_current=False,
        worker_prefetch_multiplier=1,
        broker_connection_retry_on_startup=False,
    )
