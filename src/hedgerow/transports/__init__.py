"""The edges where calls come in and go out: httpx2 transports, and one line for each SDK."""
