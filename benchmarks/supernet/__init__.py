"""Benchmarks of supernets: quality of their subnets and cost of an update."""
