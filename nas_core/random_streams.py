"""Seeds of torch's global random generators in a block of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def own_streams(seed: int | None = None, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's global generators in the block and restore them afterwards, on the CPU and all accelerators in use.

    Use :func:`seed_streams` inside: ``torch.manual_seed`` also seeds unused CUDA devices.

    Args:
        seed: None: continue from the current state.
        device: device where the block draws, in addition to the CPU.
    """
    device = torch.device(device)
    cuda = device.type == "cuda" or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    mps = torch.mps.get_rng_state() if device.type == "mps" else None
    with torch.random.fork_rng(range(torch.cuda.device_count()) if cuda else [], device_type="cuda"):
        try:
            if seed is not None:
                seed_streams(seed, device)
            yield
        finally:
            if mps is not None:
                torch.mps.set_rng_state(mps)


def seed_streams(seed: int, device: torch.device | str = "cpu") -> None:
    """Seed the global generators of the CPU and one device."""
    device = torch.device(device)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)
