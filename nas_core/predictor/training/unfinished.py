"""The files of an unfinished fit: how they are called, and how often they are written."""

from __future__ import annotations

from pathlib import Path

__all__ = ["EVERY_S", "member_file"]

EVERY_S = 30.0
"""Seconds between two writes."""


def member_file(checkpoint: Path, member: int) -> Path:
    """The file in which a checkpoint keeps one of the networks of a predictor, counted from 0."""
    return checkpoint.with_name(f"{checkpoint.name}.{member}.safetensors")
