"""Distillation: losses, and recording of activations."""
