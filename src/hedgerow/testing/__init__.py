"""For tests of code that calls an LLM: a loopback provider in a process of its own, and pytest fixtures around it."""

from hedgerow.testing.process import SandboxProcess

__all__ = ["SandboxProcess"]
