"""Benchmarks of ONNX import and export."""
