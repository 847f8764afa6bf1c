"""Families of networks with random sizes, for data sets of latencies."""
