"""The table of ONNX operators: which kind each belongs to, and what it costs."""

from __future__ import annotations

from nas_core.graph.onnx.operators import CORRECTED, flops_per_element, operator_kind


def test_an_entry_says_kind_and_cost() -> None:
    kinds = {
        name: CORRECTED[kind]
        for name in ("HardSwish", "Tanh", "com.microsoft.BiasGelu")
        if (kind := operator_kind(name))
    }
    assert kinds == {"HardSwish": "swish", "Tanh": "sigmoid", "com.microsoft.BiasGelu": "gelu"}
    assert (flops_per_element("HardSwish"), flops_per_element("com.microsoft.BiasGelu")) == (4, 6)
    assert flops_per_element("Tanh") is None, "it costs what its kind does"
    assert (
        operator_kind("HardSwish:4") is None and operator_kind("Magic") is None and flops_per_element("Magic") is None
    )
