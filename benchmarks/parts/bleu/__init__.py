"""BLEU of HAT's networks from scratch and with supernet weights, and estimators of the first from the second."""
