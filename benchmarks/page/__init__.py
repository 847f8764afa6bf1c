"""The page of results: every figure on it, on other pages and in the README is read from ``benchmarks/results``."""
