"""Latency data sets of whole networks."""
