"""The caller's random streams, as they were before something that seeds torch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

__all__ = ["own_streams"]


@contextlib.contextmanager
def own_streams(device: torch.device) -> Iterator[None]:
    """In this block torch's global generators may be seeded; afterwards they are where they were, on the CPU and on
    all accelerators that are in use."""
    cuda = device.type == "cuda" or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    mps = torch.mps.get_rng_state() if device.type == "mps" else None
    with torch.random.fork_rng(range(torch.cuda.device_count()) if cuda else []):
        try:
            yield
        finally:
            if mps is not None:
                torch.mps.set_rng_state(mps)
