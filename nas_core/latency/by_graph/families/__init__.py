"""Families of networks with random sizes, whose latency is measured to train latency models."""
