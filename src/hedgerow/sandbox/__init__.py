"""The loopback provider: answers like a hosted LLM, slow tail included, follows scripts of faults and meters the bill.

`python -m hedgerow.sandbox` starts it; in a program: `hedgerow.sandbox.server.Sandbox`.
"""
