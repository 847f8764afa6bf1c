"""What a search left in its folder, as tables and pages: one run, or several side by side."""
