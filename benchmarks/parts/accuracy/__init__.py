"""Benchmarks of accuracy predictors: tables, splits, baselines and metrics."""
