"""Pages about measured latencies and models' predictions."""
