"""TransNAS-Bench-101: 4,096 cells (micro) and 3,256 chains of modules (macro).

Duan et al., "TransNAS-Bench-101: Improving Transferability and Generalizability of Cross-Task Neural Architecture
Search", CVPR 2021. Cells are those of NAS-Bench-201 without average pooling, with the same graphs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nas_core.graph import nasbench201
from nas_core.graph.graph import Graph, GraphError, operation_indices
from nas_core.graph.graphs import with_operations
from nas_core.graph.operation import Operation

MICRO_CHOICES = nasbench201.CHOICES[:4]
"""Operations of the digits of architecture strings: ``none``, ``skip_connect``, ``nor_conv_1x1``, ``nor_conv_3x3``."""
MICRO_OPERATIONS = nasbench201.OPERATIONS
MACRO_OPERATIONS = ("input", "normal", "double_channels", "halve_resolution", "double_and_halve", "output")
"""Names of the operation indices of a macro graph. Indices 1 to 4 are the digits of a macro string."""
_MODULE = Operation("convolution", 3, repeats=4)  # two residual blocks of two convolutions
_DESCRIBED = (
    Operation("end"),
    _MODULE,
    replace(_MODULE, channels=2.0),
    replace(_MODULE, stride=2),
    replace(_MODULE, stride=2, channels=2.0),
    Operation("end"),
)

_MICRO = re.compile(r"(?:\d+-\d+-)?(\d)_(\d)(\d)_(\d)(\d)(\d)")
_MACRO = re.compile(r"(?:\d+-)?(\d+)(?:-basic)?")


def transnasbench_micro_graph(architecture: str | Sequence[int] | NDArray[np.integer]) -> Graph:
    """Return the pruned graph of a cell.

    Args:
        architecture: ``64-41414-1_02_333``, ``1_02_333``, or six indices in that order.
    """
    if isinstance(architecture, str):
        match = _MICRO.fullmatch(architecture.strip())
        if match is None:
            raise GraphError(f"got micro architecture {architecture!r}; expected one like '64-41414-1_02_333'")
        architecture = [int(digit) for digit in match.groups()]
    return nasbench201.nasbench201_graph(operation_indices(architecture, len(MICRO_CHOICES), "TransNAS-Bench-101"))


def transnasbench_macro_graph(architecture: str | Sequence[int] | NDArray[np.integer]) -> Graph:
    """Return the graph of a chain: input, modules, output.

    Args:
        architecture: ``64-1234-basic``, ``1234``, or 4 to 6 digits: 1 normal, 2 doubles channels, 3 halves the
            resolution, 4 does both. Zeros are dropped.
    """
    if isinstance(architecture, str):
        match = _MACRO.fullmatch(architecture.strip())
        if match is None:
            raise GraphError(f"got macro architecture {architecture!r}; expected one like '64-1234-basic'")
        architecture = [int(digit) for digit in match[1]]
    output = len(MACRO_OPERATIONS) - 1
    digits = operation_indices(architecture, output, "TransNAS-Bench-101")
    modules = digits[digits > 0]
    if digits.ndim != 1 or not 4 <= len(modules) <= 6:
        raise GraphError(f"got modules {digits.tolist()}; expected a list of 4 to 6 numbers from 1 to 4")
    nodes = np.arange(len(modules) + 2)
    chain = Graph(np.concatenate([[0], modules, [output]]), np.stack([nodes[:-1], nodes[1:]], axis=1))
    return with_operations(chain, _DESCRIBED)
