"""Distillation: losses, a cache of teacher outputs, and recording of activations."""
