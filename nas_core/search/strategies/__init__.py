"""Search strategies with an ask-and-tell interface."""
