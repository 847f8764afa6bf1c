"""ONNX models as graphs with node features and costs. Needs the extra ``onnx``."""
