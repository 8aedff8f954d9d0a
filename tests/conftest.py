"""Loads hedgerow's own pytest plugin where a checkout is tested without being installed; no test asserts elapsed time."""

from importlib.metadata import entry_points

from hypothesis import settings

PLUGIN = "hedgerow.testing.plugin"

if all(entry.value != PLUGIN for entry in entry_points(group="pytest11")):
    pytest_plugins = [PLUGIN]

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
