"""Training with a teacher inside fairseq."""
