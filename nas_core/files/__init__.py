"""Atomic writers, journals that survive kills, and readers with errors of one line.

Every file of this project is written here. A crash, a full disk or a second process never damages an existing file.
"""
