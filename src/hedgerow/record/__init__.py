"""What is remembered of each request: the event, where it is kept, and who is told."""
