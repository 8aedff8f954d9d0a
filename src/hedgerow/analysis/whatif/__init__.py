"""What each policy would have done to a log's calls, and how sure that is: copies from neighbours in time, raced."""
