"""Kinds of attention: one file or folder each."""
