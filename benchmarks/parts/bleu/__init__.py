"""Standalone BLEU of HAT's networks, BLEU by supernets, and estimators of one from the other."""
