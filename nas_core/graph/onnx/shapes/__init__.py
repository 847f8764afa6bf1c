"""Shapes of all tensors of an ONNX model, inferred and checked."""
