"""When a backup is sent: trouble.py says who is in trouble, gate.py who may act on it, plan.py what holds for a request."""
