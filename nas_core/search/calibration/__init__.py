"""Estimates of a network's quality after training alone, from supernet metrics and a few trained networks."""
