"""Benchmarks of searches: queries to a good architecture, throughput, restarts."""
