"""What the number of experts and the size of routers are worth, by supernets that differ in nothing else."""

from nas_core.studies.experts.training import train_supernets

__all__ = ["train_supernets"]
