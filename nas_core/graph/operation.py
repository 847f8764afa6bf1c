"""Descriptions of operations that different search spaces share."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from nas_core.checks import Range, check_fields

KINDS = ("end", "convolution", "linear", "attention", "pooling", "identity", "none")
"""Types of operations.

``end`` is an input or output of networks and cells, ``linear`` a convolution of kernel 1 or a transformer's linear
layer, ``identity`` a skip connection, and ``none`` an output of zeros.
"""


_RANGES = {
    **dict.fromkeys(("kernel", "stride", "dilation", "repeats"), Range(1)),
    **dict.fromkeys(("channels", "expansion"), Range(0, exclude=(0,))),
    "groups": Range(0),
}


@dataclass(frozen=True)
class Operation:
    """Description of an operation, independent of a search space.

    Example:
        >>> Operation("convolution", kernel=3, groups=4)
        >>> Operation("pooling", kernel=3, average=True, stride=2)
    """

    kind: str = field(metadata={"choices": KINDS})
    """One of :data:`KINDS`."""
    kernel: int = 1
    """Size of the window along each edge."""
    stride: int = 1
    """Divisor of the resolution along each edge."""
    dilation: int = 1
    channels: float = 1.0
    """Output channels divided by input channels."""
    expansion: float = 1.0
    """Channels inside an inverted bottleneck, divided by input channels."""
    groups: int = 1
    """Groups of channels. 0 means depth-wise, followed by a convolution of kernel 1."""
    repeats: int = 1
    """Number of repetitions. Stride and channels apply to the first one."""
    average: bool = False
    """Use the mean instead of the maximum for pooling."""

    def __post_init__(self) -> None:
        check_fields(self, "an operation", _RANGES)


def _kernel(match: re.Match[str]) -> int:
    return max(int(edge) for edge in re.findall(r"\d+", match["kernel"]))


_WORDS = {
    **dict.fromkeys(("skip_connect", "identity", "skip", "residual", "sum", "add", "concat"), Operation("identity")),
    **dict.fromkeys(("none", "zero", "zeroize"), Operation("none")),
    **dict.fromkeys(("linear", "fc", "ffn", "dense"), Operation("linear")),
    **dict.fromkeys(("attention", "self_attention", "encoder_self_attention"), Operation("attention")),
    "factorized_reduce": Operation("convolution", stride=2),
}
_END = re.compile(r"(?:[a-z]+_)*(?:input|output)(?:_?\d+)?")
_POOLING = re.compile(r"(?P<how>max|avg|average|mean)_?pool(?:ing)?_?(?P<kernel>\d+(?:x\d+)?)?")
_SEPARABLE = re.compile(r"(?P<how>sep|dil|dw|dil_sep|depthwise)_?conv_?(?P<kernel>\d+(?:x\d+)?)")
_PLAIN = re.compile(r"(?:nor_?)?conv(?:_?bn_?relu)?_?(?P<kernel>\d+(?:x\d+)?(?:_\d+x\d+)*)(?:_?d(?P<dilation>\d+))?")
_INVERTED = re.compile(
    r"(?:mbconv_?|ir_)?k(?P<kernel>\d+)(?:x\d+)?_?e(?P<expansion>\d+)(?:_?g(?P<groups>\d+))?(?:_?se)?"
)
_TAIL = re.compile(r"[-_](?:bn|relu|gelu|norm)\b|[-_]bn[-_]relu")


@functools.cache  # graphs of one search space repeat a few names
def operation_named(name: str) -> Operation | None:
    """Return the operation with a name of a benchmark, or None for unknown names.

    Examples are ``nor_conv_3x3``, ``conv3x3-bn-relu``, ``sep_conv_5x5`` (twice, as in DARTS), ``dil_conv_3x3``,
    ``conv_7x1_1x7``, ``max_pool_3x3``, ``skip_connect``, ``none``, ``k3_e6_g2`` (an inverted bottleneck), ``input``.
    """
    word = _TAIL.sub("", name.strip().lower())
    if word in _WORDS:
        return _WORDS[word]
    if _END.fullmatch(word):
        return Operation("end")
    if match := _POOLING.fullmatch(word):
        kernel = _kernel(match) if match["kernel"] else 3
        return Operation("pooling", kernel, average=match["how"] != "max")
    if match := _SEPARABLE.fullmatch(word):
        dilation, repeats = (2 if "dil" in match["how"] else 1), (2 if match["how"] == "sep" else 1)
        return Operation("convolution", _kernel(match), dilation=dilation, groups=0, repeats=repeats)
    if match := _PLAIN.fullmatch(word):
        return Operation("convolution", _kernel(match), dilation=int(match["dilation"] or 1))
    if match := _INVERTED.fullmatch(word):
        return Operation("convolution", _kernel(match), groups=0, expansion=float(match["expansion"]))
    return None
