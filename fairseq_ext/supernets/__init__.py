"""Checkpoints of this plug-in as supernets of ``nas_core``."""
