"""Estimates of standalone quality from a supernet and a few trained networks."""
