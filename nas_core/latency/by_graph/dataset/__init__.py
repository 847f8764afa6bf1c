"""Data sets of whole networks' latencies: planned, measured, stored, read."""
