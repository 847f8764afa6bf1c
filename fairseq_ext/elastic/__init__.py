"""Trained networks of fairseq's own models, converted to the largest subnet of a supernet."""
