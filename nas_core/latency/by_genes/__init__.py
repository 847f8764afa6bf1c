"""Latency of the architectures of one search space: measurements, drift, and models of genes."""
