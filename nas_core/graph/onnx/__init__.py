"""ONNX models as graphs with node features and costs, with the extra ``onnx``."""
