"""Training of supernets through fairseq, whichever task it is."""
