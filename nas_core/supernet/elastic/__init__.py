"""Conversion of trained networks into supernets."""
