"""Distillation in fairseq's training; importing it registers the criteria."""

from fairseq_ext.distillation import criterion

__all__ = ["criterion"]
