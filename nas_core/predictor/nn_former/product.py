"""Products with weights that stay, laid out once as the processor reads them."""

from __future__ import annotations

import torch
from torch import Tensor

from nas_core.predictor.nn_former.place import on_host

__all__ = ["Product", "packable_weights"]

ROWS = 1024
"""Rows for which weights are laid out; products of fewer and of more are right too."""


def packable_weights(device: torch.device) -> bool:
    """Whether torch has oneDNN's products with weights in an order of its own there. Otherwise bfloat16 weights would
    be ordered anew in each product, which takes longer than the product where graphs come one by one."""
    known = all(hasattr(torch.ops.mkldnn, name) for name in ("_reorder_linear_weight", "_linear_pointwise"))
    built = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return on_host(device) and built and known


class Product:
    """x Wᵀ for x ``(rows, in)``, with what is done to it at once.

    Args:
        weight: W ``(out, in)``.
        dtype: of what is multiplied.
        packed: by oneDNN, or by torch's plain operations; default: by oneDNN where it is there.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype, packed: bool | None = None) -> None:
        self.packed = packable_weights(weight.device) if packed is None else packed
        kept = weight.detach().to(dtype)
        self.weight: Tensor = kept.T.contiguous()
        if self.packed:
            products = torch.ops.mkldnn._linear_pointwise  # looked up once: that takes as long as a small product
            self._product, self._sum = products.default, products.binary
            try:
                self.weight = torch.ops.mkldnn._reorder_linear_weight(kept.contiguous(), ROWS)
            except RuntimeError:  # the processor has no products in these numbers
                self.packed = False

    def __call__(self, x: Tensor) -> Tensor:
        """``(rows, out)``."""
        if not self.packed:
            return x @ self.weight
        product: Tensor = self._product(x, self.weight, None, "none", [], "")
        return product

    def relu(self, x: Tensor) -> Tensor:
        """``(rows, out)``, 0 where it is negative."""
        if not self.packed:
            return (x @ self.weight).relu_()
        product: Tensor = self._product(x, self.weight, None, "relu", [], "")
        return product

    def added(self, x: Tensor, other: Tensor) -> Tensor:
        """``(rows, out)``, the other ``(rows, out)`` added."""
        if not self.packed:
            return torch.addmm(other, x, self.weight)
        product: Tensor = self._sum(x, other, self.weight, None, "add")
        return product
