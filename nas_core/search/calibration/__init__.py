"""Estimates of quality after training from scratch, from supernets and a few trained networks."""
