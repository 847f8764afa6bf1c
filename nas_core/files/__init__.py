"""Atomic writers, journals that survive kills, and readers with errors of one line.

All files of this project are written here: a crash, a full disk or a second process never damages an old file.
"""
