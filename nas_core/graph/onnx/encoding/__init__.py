"""ONNX operators as nodes with features and costs: our encoding and the released one."""
