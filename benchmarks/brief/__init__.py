"""``make bench``: each benchmark that states a small size, run once at it, one file for each machine."""
