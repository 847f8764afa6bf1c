"""Conversion of trained networks into supernets."""

from nas_core.supernet.elastic.importance import CRITERIA, importance
from nas_core.supernet.elastic.take_over import TakenOver, Trained, take_over

__all__ = ["CRITERIA", "TakenOver", "Trained", "importance", "take_over"]
