"""Masked language models in fairseq: supernets, their task, and fairseq's own RoBERTa as it is exported."""

from fairseq_ext.masked_lm import model

__all__ = ["model"]
