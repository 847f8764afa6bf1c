"""Benchmarks of latency models."""
