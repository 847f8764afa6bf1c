"""Data sets from published latencies of networks."""
