"""Loads hedgerow's own pytest plugin where a checkout is tested without being installed."""

from importlib.metadata import entry_points

PLUGIN = "hedgerow.testing.plugin"

if all(entry.value != PLUGIN for entry in entry_points(group="pytest11")):
    pytest_plugins = [PLUGIN]
