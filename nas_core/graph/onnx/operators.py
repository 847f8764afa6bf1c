"""ONNX operators grouped by what they do to a device: 32 kinds, one for each place of the one-hot code."""

from __future__ import annotations

__all__ = ["CORRECTED", "INPUT", "OTHER", "PASSED", "RELEASED", "SHAPE_READERS", "VIEWS", "kind_of"]

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
    "batch_norm": "BatchNormalization",
    "layer_norm": (
        "LayerNormalization RMSNormalization SimplifiedLayerNormalization com.microsoft.SkipLayerNormalization "
        "com.microsoft.SkipSimplifiedLayerNormalization LpNormalization"
    ),
    "group_norm": ("GroupNormalization InstanceNormalization MeanVarianceNormalization LRN com.microsoft.GroupNorm"),
    "relu": "Relu LeakyRelu PRelu ThresholdedRelu Elu Selu Celu Shrink",
    "clip": "Clip Max Min",
    "sigmoid": "Sigmoid HardSigmoid Tanh Softsign",
    "swish": "HardSwish Swish Mish Softplus com.microsoft.QuickGelu",
    "gelu": "Gelu Erf com.microsoft.Gelu com.microsoft.FastGelu com.microsoft.BiasGelu",
    "softmax": "Softmax LogSoftmax Hardmax",
    "add": "Add Sub Sum Mean",
    "mul": "Mul RotaryEmbedding com.microsoft.RotaryEmbedding",
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
        "GridSample AffineGrid"
    ),
    "cast": "Cast CastLike BitCast QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
    "other": "Shape Size Constant ConstantOfShape Range EyeLike RandomNormal RandomNormalLike RandomUniform "
    "RandomUniformLike Bernoulli Multinomial",
}
CORRECTED = tuple(_GROUPS)
"""Kinds of the corrected encoding; operators that nobody knows are ``other``, which is also that of generators."""
INPUT, OTHER = CORRECTED.index("input"), CORRECTED.index("other")
_KINDS = {operator: index for index, operators in enumerate(_GROUPS.values()) for operator in operators.split()}

RELEASED = (
    "Conv", "Relu", "Add", "Sigmoid", "Reshape", "MaxPool", "Split", "GlobalAveragePool", "Gemm", "Transpose",
    "Upsample", "BatchNormalization", "Mul", "Concat", "Flatten", "AveragePool", "Cast", "Matmul", "ReduceMean", "Pow",
    "Slice", "Div", "Sub", "Sqrt", "Clip", "Softmax", "Tanh", "ConvTranspose", "free_28", "free_29", "free_30",
    "input_or_unknown",
)  # fmt: skip
"""Kinds of the released encoding, in its order. It spells MatMul so that no operator is ever found there; inputs and
unknown operators, which have no code of their own, stand at the last place."""

PASSED = ("Identity", "Dropout")
"""Operators that a runtime leaves out: at inference they give what they are given."""
SHAPE_READERS = ("Shape", "Size")
"""Operators whose results follow from shapes alone."""
VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "SequenceConstruct", "SequenceAt", *PASSED)
"""Operators that move nothing."""


def kind_of(operator: str) -> int | None:
    """Index into :data:`CORRECTED`, None where the operator is not known."""
    return _KINDS.get(operator)
