"""Offline: what logs and attempt-level data say. Never imports the engine; decides with the same rules."""
