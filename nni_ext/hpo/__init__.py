"""Searches as tuners for experiment YAMLs."""
