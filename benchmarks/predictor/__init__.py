"""Benchmarks of accuracy predictors: quality and speed."""
