"""``make bench``: every benchmark once at a small size that it states itself, one file for each machine."""
