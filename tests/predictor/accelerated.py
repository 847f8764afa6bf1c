"""The code path of accelerators on the CPU, where it is slower but can be tested."""

from __future__ import annotations

from typing import Any

import pytest
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: PLC2701

from nas_core.predictor import device as module

ATOMIC = {
    # On a CUDA device these add in the order in which threads arrive, without an error unless one is asked for.
    f"aten.{name}"
    for name in (
        "index_add", "index_add_", "scatter_add", "scatter_add_", "index_reduce", "index_reduce_", "put_",
        "index_select_backward", "gather_backward", "_scaled_dot_product_efficient_attention_backward",
        "_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_cudnn_attention_backward",
        "_scaled_dot_product_flash_attention_for_cpu_backward", "_embedding_bag_dense_backward",
        "embedding_dense_backward", "_embedding_bag_backward", "_embedding_bag_per_sample_weights_backward",
    )
}  # fmt: skip


@pytest.fixture
def as_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """No device is the host."""
    monkeypatch.setattr(module, "HOSTS", ())


class NoAtomicSums(TorchDispatchMode):
    """Rejects operations whose sums have no order on CUDA."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = str(func.overloadpacket), kwargs or {}
        if name in ATOMIC or (name.startswith("aten.scatter_reduce") and args[4] not in ("amax", "amin")):
            raise AssertionError(f"{name} adds in no order")
        return func(*args, **kwargs)
