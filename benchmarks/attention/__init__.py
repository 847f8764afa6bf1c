"""Benchmarks of attention: linear against softmax, quality and speed."""
