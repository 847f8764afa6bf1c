"""The forms of linear attention that CUDA takes, on the CPU: slower there, but right or wrong in the same way."""

from __future__ import annotations

import pytest
import torch

from nas_core.layers.attention.cosformer import forms
from nas_core.layers.attention.cosformer.forms import chosen_form

__all__ = ["take_cuda_forms"]


def take_cuda_forms(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """From now on ``auto`` chooses as on CUDA, and products of float16 go the way they go there; the forms that were
    chosen."""
    taken: set[str] = set()

    def chosen(device_type: str, *others: object) -> str:
        form = chosen_form("cuda", *others)  # type: ignore[arg-type]
        taken.add(form)
        return form

    def multiply_for(x: torch.Tensor) -> object:
        return forms._TF32Product.apply if x.dtype == torch.float16 else torch.matmul  # private: only used on CUDA

    monkeypatch.setattr(forms, "chosen_form", chosen)
    monkeypatch.setattr(forms, "multiply_for", multiply_for)
    return taken
