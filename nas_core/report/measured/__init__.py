"""HTML pages of measurements and of predictions for them."""
