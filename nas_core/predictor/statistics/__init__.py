"""Accuracy from statistics of the graph: Gaussian process and boosted trees."""
