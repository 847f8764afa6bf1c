"""Neural architecture search without a host framework: spaces, layers, supernets, predictors, latency, search."""

__version__ = "0.1.0"

__all__ = ["__version__"]
