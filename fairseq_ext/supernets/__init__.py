"""Supernets of ``nas_core`` in checkpoints of this package."""
