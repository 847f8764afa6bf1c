"""Training update of a translation supernet on any device, without fairseq.

An update is forward and backward of one random subnet, or of a sandwich's three, with the fused loss, gradient clipping
and Adam; bf16 and fp16 under autocast, fp16 with loss scaling.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.parts.timing import time_ms
from benchmarks.parts.update_sizes import PAD, Batch, Size, batch_of
from nas_core.errors import ConfigError
from nas_core.layers import MoSConfig
from nas_core.layers.smoothed_loss import projected_smoothed_loss
from nas_core.models.translation import TranslationConfig, TranslationNet
from nas_core.precision import check_precision, computing_in, tf32
from nas_core.space import Architecture, get_space
from nas_core.supernet.sampling import draw, sandwich

EXPERTS = ("none", "layer", "neuron")
SAMPLINGS = ("spos", "sandwich")
WARM_UP = 2


@dataclass(frozen=True)
class Case:
    """Training whose update is measured."""

    size: str
    experts: str
    sampling: str
    precision: str

    @property
    def key(self) -> dict[str, str]:
        return asdict(self)


def measure_update(case: Case, size: Size, device: torch.device, repeats: int) -> dict[str, Any]:
    """Return milliseconds of an update (median and quartiles), target tokens per second and peak memory, or a note."""
    try:
        check_precision(case.precision, device)
        training = Training(case, size, device)
        training.train_largest()
        for index in range(WARM_UP):
            training.update(index)
        peak_memory = _track_peak_memory(device)
        times_ms = [time_ms(partial(training.update, index), device) for index in range(WARM_UP, WARM_UP + repeats)]
        peak_gb = peak_memory()
    except ConfigError as error:
        return {"absent": str(error)}
    except torch.OutOfMemoryError:
        return {"absent": "out of memory"}
    finally:
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
    low, median, high = np.quantile(times_ms, (0.25, 0.5, 0.75))
    return {
        "params_m": round(sum(parameter.numel() for parameter in training.net.parameters()) / 1e6, 2),
        "target_tokens": training.tokens,
        "update_ms": round(float(median), 2),
        "q25_ms": round(float(low), 2),
        "q75_ms": round(float(high), 2),
        "tokens_per_s": round(training.tokens / float(median) * 1000),
        "peak_gb": peak_gb,
    }


class Training:
    """Supernet with optimizer and one batch."""

    def __init__(self, case: Case, size: Size, device: torch.device) -> None:
        torch.manual_seed(1)
        self.case, self.device, self.space = case, device, get_space(size.space)
        config = TranslationConfig(share_all_embeddings=True, dropout=0.1, mos=MoSConfig(kind=case.experts))
        self.net = TranslationNet(self.space, size.vocabulary, size.vocabulary, config).to(device).train()
        cuda = device.type == "cuda"
        self.optimizer = torch.optim.Adam(self.net.parameters(), 1e-4, (0.9, 0.98), fused=cuda)
        # a scale without overflow, so that no update is skipped
        self.scaler = torch.amp.GradScaler(device.type, init_scale=1024.0, enabled=case.precision == "fp16")
        batch = batch_of(size)
        self.batch: Mapping[str, Tensor] = _to_device(batch, device)
        self.tokens = int(batch.lengths.sum())

    def update(self, index: int) -> None:
        architecture = draw(self.space, index)
        self._train(
            [architecture] if self.case.sampling == "spos" else list(sandwich(self.space, architecture).values())
        )

    def train_largest(self) -> None:
        """Train the largest subnet, which allocates enough memory for all others."""
        self._train([self.space.largest()])

    def _train(self, architectures: list[Architecture]) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        with tf32(self.case.precision == "tf32"):
            for architecture in architectures:
                with computing_in(self.case.precision, self.device):
                    loss = self._loss(architecture)
                self.scaler.scale(loss / (len(architectures) * self.tokens)).backward()
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def _loss(self, architecture: Architecture) -> Tensor:
        subnet = self.net.select(architecture)
        memory = self.net.encode(subnet, self.batch["source"])
        features = self.net.decode_features(subnet, self.batch["previous"], memory).flatten(0, 1)
        return projected_smoothed_loss(features, subnet.output, self.batch["target"].flatten(), 0.1, PAD)[0]


def _to_device(batch: Batch, device: torch.device) -> dict[str, Tensor]:
    return {name: torch.from_numpy(getattr(batch, name)).to(device) for name in ("source", "previous", "target")}


def _track_peak_memory(device: torch.device) -> Callable[[], float | None]:
    """Return a function that returns the peak memory in GB from now on; None on a CPU."""
    if device.type != "cuda":
        return lambda: None
    torch.cuda.reset_peak_memory_stats(device)
    return lambda: round(torch.cuda.max_memory_allocated(device) / 1e9, 3)
