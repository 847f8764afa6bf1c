"""What a process that does not use CUDA must be spared."""

from __future__ import annotations

import pytest
import torch

from nas_core.random_streams import own_streams, seed_streams


def fail(*args: object) -> None:
    raise AssertionError(f"CUDA was touched: {args}")


def test_cuda_is_left_alone_where_nobody_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    for name in ("get_rng_state", "set_rng_state", "manual_seed", "manual_seed_all", "_lazy_init"):
        monkeypatch.setattr(torch.cuda, name, fail)
    with own_streams(3):
        seed_streams(4)
        torch.rand(1)


def test_every_cuda_device_in_use_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    states = {0: torch.tensor([0], dtype=torch.uint8), 1: torch.tensor([1], dtype=torch.uint8)}
    put: dict[int, torch.Tensor] = {}
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: states[int(device)])
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: put.__setitem__(int(device), state))
    with own_streams():
        assert not put
    assert put == states
