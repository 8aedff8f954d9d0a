"""Keeps a Pilot's memory in a file, so that a process that starts again is not cold. Trouble with it never fails a call."""

import logging
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from hedgerow.clock import Clock
from hedgerow.policy.pilot import Pilot
from hedgerow.policy.snapshot import remember, snapshot_of

__all__ = ["StateFile"]

SAVE_EVERY_S = 60.0

log = logging.getLogger("hedgerow")


class StateFile:
    """One process's memory at `path`; it is written every minute of use and at close. Give each process a file of its own:
    of several that share one, the last to write wins. unwritable: keys that the last writing had to leave out."""

    def __init__(self, path: str | os.PathLike[str], clock: Clock) -> None:
        self._path, self._clock = Path(path), clock
        self._saved_s = clock.now()
        self._complained = False
        self.unwritable = 0

    def load(self, pilot: Pilot) -> bool:
        """Fill a fresh Pilot from the file; False if there is none, or it cannot be read (which is logged)."""
        try:
            memory: dict[str, Any] = orjson.loads(self._path.read_bytes())
            away_s = (self._clock.utc() - datetime.fromisoformat(memory["at"])).total_seconds()
            remember(pilot, memory, self._clock.now(), max(0.0, away_s))
        except FileNotFoundError:
            return False
        except Exception as error:  # logged: a broken memory is as good as none
            log.warning("the state in %s cannot be used and is left behind: %r", self._path, error)
            return False
        self.save(pilot)  # from now on it is that of a process that has not ended cleanly
        return True

    def save_sometimes(self, pilot: Pilot) -> None:
        """Save if the last time is a minute ago."""
        if self._clock.now() - self._saved_s >= SAVE_EVERY_S:
            self.save(pilot)

    def save(self, pilot: Pilot, *, clean: bool = False) -> None:
        """Write the file, whole or not at all. clean: this process will send nothing more."""
        self._saved_s = self._clock.now()
        try:
            memory = {"at": self._clock.utc().isoformat(), **snapshot_of(pilot, self._saved_s, clean=clean)}
            data = self._written(memory)
            beside = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
            beside.write_bytes(data)
            beside.replace(self._path)
        except Exception as error:  # logged once; the next start will be colder
            if not self._complained:
                self._complained = True
                log.warning("the state cannot be kept in %s: %r", self._path, error)

    def _written(self, memory: dict[str, Any]) -> bytes:
        """As JSON, without the keys that cannot be written so: a name with half a character in it, a number of 70 bits."""
        try:
            return orjson.dumps(memory)
        except orjson.JSONEncodeError:
            keys = [each for each in memory["keys"] if _is_writable(each)]
            if (odd := len(memory["keys"]) - len(keys)) != self.unwritable:
                self.unwritable = odd
                log.warning("the state in %s is kept without %d keys that cannot be written", self._path, odd)
            return orjson.dumps({**memory, "keys": keys})


def _is_writable(value: object) -> bool:
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return False
    return True
