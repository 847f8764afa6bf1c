"""Atomic writers, journals, and readers with one-line errors.

All files of this project are written by this package. A crash or a full disk never damages an existing file.
"""
