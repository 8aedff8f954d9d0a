"""What a log says about each key: its tail and how sure it is, what the tail comes from, when it comes, and what it costs."""
