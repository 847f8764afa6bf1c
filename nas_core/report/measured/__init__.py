"""Pages about measured latencies and about the predictions of models."""
