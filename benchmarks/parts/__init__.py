"""Modules that several benchmarks share: published tables, plain references, stored results."""
