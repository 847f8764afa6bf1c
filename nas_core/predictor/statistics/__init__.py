"""Accuracy models on graph statistics, such as counts of operations and paths."""
