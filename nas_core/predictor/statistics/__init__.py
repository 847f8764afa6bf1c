"""Accuracy models on statistics of graphs."""
