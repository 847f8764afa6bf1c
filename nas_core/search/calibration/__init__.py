"""Estimates of quality after training alone, from supernets and a few trained networks."""
