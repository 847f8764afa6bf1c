"""Temporary seeding of torch's global random generators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def own_streams(seed: int | None = None, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed torch's global random generators inside the block, and restore their state afterwards.

    To seed again inside the block, call :func:`seed_streams`. ``torch.manual_seed`` also seeds unused CUDA devices.

    Args:
        seed: random seed; None: continue from the current state.
        device: device whose generator the block uses in addition to that of the CPU.
    """
    device = torch.device(device)
    cuda = device.type == "cuda" or torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(range(torch.cuda.device_count()) if cuda else [], device_type="cuda"):
        if seed is not None:
            seed_streams(seed, device)
        yield


def seed_streams(seed: int, device: torch.device | str = "cpu") -> None:
    """Seed torch's global random generators of the CPU and of one device."""
    device = torch.device(device)
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
