"""What a search makes of predictions and their spread."""
