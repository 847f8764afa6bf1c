"""Which precision a predictor computes in: the one that was given, the device's fast one, or what is left."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from nas_core.precision import PRECISIONS
from nas_core.predictor.precision import chosen_precision, usable_precision

CUDA = torch.device("cuda:1")


@pytest.mark.parametrize(("ampere", "fast"), [(True, "bf16"), (False, "fp32")])
def test_the_fast_one_is_that_of_the_device_itself(monkeypatch: pytest.MonkeyPatch, ampere: bool, fast: str) -> None:
    asked: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "device", lambda device: asked.append(device) or nullcontext())
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: ampere and not including_emulation)
    assert chosen_precision("auto", CUDA) == fast and asked == [CUDA]
    assert [chosen_precision(name, CUDA) for name in PRECISIONS] == list(PRECISIONS)


@pytest.mark.parametrize(
    ("major", "usable"), [(7, ["fp32", "fp32", "fp32", "fp16"]), (9, ["fp32", "tf32", "bf16", "fp16"])]
)
def test_a_device_that_lacks_one_takes_float32(monkeypatch: pytest.MonkeyPatch, major: int, usable: list[str]) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (major, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "a device")
    assert [usable_precision(name, CUDA) for name in PRECISIONS] == usable
