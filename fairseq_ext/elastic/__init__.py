"""Conversion of trained models of fairseq to supernets."""
