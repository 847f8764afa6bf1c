"""Tuner for NNI experiments, and its registration."""
