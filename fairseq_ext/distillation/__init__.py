"""Distillation in fairseq's training."""
