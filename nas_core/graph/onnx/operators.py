"""Groups of ONNX operators: the operation indices of graphs."""

from __future__ import annotations

# Operators by group. HardSwish:4 costs 4 FLOPs per output element, others as much as their group.
_GROUPS = {
    "input": "",
    "conv": "Conv ConvInteger QLinearConv com.microsoft.FusedConv DeformConv",
    "conv_transpose": "ConvTranspose Col2Im",
    "gemm": "Gemm com.microsoft.FusedGemm",
    "matmul": "MatMul MatMulInteger QLinearMatMul Einsum com.microsoft.FusedMatMul com.microsoft.MatMulNBits",
    "attention": (
        "Attention com.microsoft.Attention com.microsoft.MultiHeadAttention com.microsoft.GroupQueryAttention"
    ),
    "recurrent": "LSTM GRU RNN",
    "batch_norm": "BatchNormalization:2",
    "layer_norm": (
        "LayerNormalization RMSNormalization:4 SimplifiedLayerNormalization:4 com.microsoft.SkipLayerNormalization:8 "
        "com.microsoft.SkipSimplifiedLayerNormalization:5 LpNormalization:3"
    ),
    "group_norm": ("GroupNormalization InstanceNormalization MeanVarianceNormalization LRN com.microsoft.GroupNorm"),
    "relu": "Relu LeakyRelu PRelu ThresholdedRelu Elu Selu Celu Shrink",
    "clip": "Clip Max Min",
    "sigmoid": "Sigmoid HardSigmoid:3 Tanh Softsign",
    "swish": "HardSwish:4 Swish:2 Mish:4 Softplus:2 com.microsoft.QuickGelu:3",
    "gelu": "Gelu:5 Erf:1 com.microsoft.Gelu:5 com.microsoft.FastGelu:8 com.microsoft.BiasGelu:6",
    "softmax": "Softmax LogSoftmax Hardmax",
    "add": "Add Sub Sum Mean",
    "mul": "Mul RotaryEmbedding:3 com.microsoft.RotaryEmbedding:3",
    "div": "Div Reciprocal Mod",
    "math": (
        "Pow Sqrt Exp Log Abs Neg Sign Ceil Floor Round Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Det "
        "BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor DFT STFT"
    ),
    "logic": "Where Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Not IsInf IsNaN Trilu",
    "max_pool": "MaxPool MaxUnpool MaxRoiPool RoiAlign",
    "average_pool": "AveragePool LpPool",
    "global_pool": "GlobalAveragePool GlobalMaxPool GlobalLpPool",
    "reduce": (
        "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
        "ReduceSumSquare ArgMax ArgMin CumSum CumProd TopK"
    ),
    "reshape": "Reshape Flatten Squeeze Unsqueeze Identity Dropout",
    "transpose": "Transpose DepthToSpace SpaceToDepth",
    "concat": "Concat Pad Expand Tile ConcatFromSequence CenterCropPad",
    "slice": "Slice Split SplitToSequence SequenceAt SequenceConstruct ReverseSequence Compress",
    "gather": (
        "Gather GatherElements GatherND Scatter ScatterElements ScatterND TensorScatter OneHot NonZero Resize Upsample "
        "GridSample:8 AffineGrid"
    ),
    "cast": "Cast CastLike BitCast QuantizeLinear:2 DequantizeLinear:2 DynamicQuantizeLinear:3",
    "other": "Shape Size Constant ConstantOfShape Range EyeLike RandomNormal RandomNormalLike RandomUniform "
    "RandomUniformLike Bernoulli Multinomial",
}
KIND_NAMES = tuple(_GROUPS)
"""Names of the groups. Unknown operators belong to ``other``."""
INPUT, OTHER = KIND_NAMES.index("input"), KIND_NAMES.index("other")
KINDS = len(KIND_NAMES)
"""Number of groups."""
_ENTRIES = [(index, *word.partition(":")) for index, words in enumerate(_GROUPS.values()) for word in words.split()]
_KIND_OF = {operator: index for index, operator, _, _ in _ENTRIES}
_FLOPS_OF = {operator: int(flops) for _, operator, _, flops in _ENTRIES if flops}

PASS_THROUGH = ("Identity", "Dropout")
"""Operators without effect at inference."""
SHAPE_READERS = ("Shape", "Size")
"""Operators whose results depend only on shapes."""
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "SequenceConstruct", "SequenceAt", *PASS_THROUGH)
"""Operators that move no data."""


def operator_kind(operator: str) -> int | None:
    """Return the index of an operator's group in :data:`KIND_NAMES`, or None if it is unknown."""
    return _KIND_OF.get(operator)


def flops_per_element(operator: str) -> int | None:
    """Return FLOPs per output element, or None if they depend on the operator's group."""
    return _FLOPS_OF.get(operator)
