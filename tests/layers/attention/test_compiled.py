"""cosFormer attention under ``torch.compile``; apart, as no compiler looks through a mutation tester's calls."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nas_core.layers.attention.cosformer import cosformer_attention


@pytest.mark.parametrize("causal", [False, True])
def test_compiled_attention_is_one_graph(causal: bool) -> None:
    q, k, v = torch.randn(3, 1, 2, 40, 8).unbind(0)

    def compute(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return cosformer_attention(q, k, v, max_length=40, causal=causal)

    compiled = torch.compile(compute, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(q, k, v), compute(q, k, v))
