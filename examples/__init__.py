"""One folder per job; each is run by a test."""
