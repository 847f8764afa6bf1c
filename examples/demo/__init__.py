"""Demo: from a parallel corpus to fast translation models."""
