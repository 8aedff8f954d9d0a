"""What is normal, per key: rings of recent times, counted in requests and never in seconds."""
