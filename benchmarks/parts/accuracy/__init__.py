"""Benchmarks of accuracy predictors: tables, which cells are taught and judged, baselines, and what is looked at."""
