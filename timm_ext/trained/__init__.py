"""Conversion of models trained by timm to supernets, and distillation."""
