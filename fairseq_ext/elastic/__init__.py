"""Conversion of fairseq's own models to supernets whose largest subnet is the trained network."""
