"""Latency of the architectures of one search space: measurements and models."""
