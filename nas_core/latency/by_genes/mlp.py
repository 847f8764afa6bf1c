"""HAT's latency predictor: a multi-layer perceptron on averages over layers (Wang et al., ACL 2020).

:class:`HATModel` trains as HAT does: Adam with a constant learning rate on the squared error in ms. :class:`MLPModel`
standardises inputs, predicts the logarithm, and has a robust loss, a decaying learning rate, and early stopping on a
held-out tenth.
"""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from nas_core.checks import SEEDS, Range, check_fields
from nas_core.latency.by_genes.base import GeneLatencyModel
from nas_core.latency.model import Floats
from nas_core.random_streams import own_streams
from nas_core.space import SearchSpace

_CHECK_EVERY = 50
_HELD_OUT = 0.1
_RANGES = {
    **dict.fromkeys(("hidden", "layers", "steps", "batch"), Range(1)),
    "lr": Range(0, without=(0,)),
    "seed": SEEDS,
}


@dataclass(frozen=True, kw_only=True)
class MLPConfig:
    """Settings of :class:`MLPModel`."""

    hidden: int = 400
    """Width of the hidden layers."""
    layers: int = 4
    """Number of hidden layers."""
    steps: int = 1500
    """Number of updates."""
    batch: int = 128
    """Rows drawn for each update."""
    lr: float = 1e-3
    """Maximum learning rate of Adam."""
    logarithmic: bool = True
    """True: predict the logarithm, with standardised inputs, cosine learning rate and best weights; False: as HAT."""
    seed: int = 0
    """Seed of the initial weights, the batches and the held-out rows."""

    def __post_init__(self) -> None:
        check_fields(self, ranges=_RANGES)


@dataclass(frozen=True, kw_only=True)
class HATConfig(MLPConfig):
    """Settings of :class:`HATModel`."""

    steps: int = 5000
    lr: float = 1e-5
    logarithmic: bool = False


class MLPModel(GeneLatencyModel):
    """Multi-layer perceptron on the average of each gene over the layers."""

    name = "mlp"
    config_class = MLPConfig
    config: MLPConfig

    def __init__(self, space: SearchSpace, source: str = "rows", config: MLPConfig | None = None) -> None:
        super().__init__(space, source, config)
        self._shift = self._scale = np.zeros(0, np.float32)
        self._target = (0.0, 1.0)
        self._weights: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []

    def learn(self, inputs: NDArray[Any], latency_ms: Floats) -> Floats:
        config = self.config
        x = self._summary(inputs)
        self._shift, self._scale = np.zeros(x.shape[1], np.float32), np.ones(x.shape[1], np.float32)
        self._target = (0.0, float(latency_ms.max()))
        y = latency_ms
        if config.logarithmic:
            self._shift, self._scale = x.mean(0), np.maximum(x.std(0), 1e-6)
            y = np.log(latency_ms)
            self._target = (float(y.mean()), max(float(y.std()), 1e-6))
        shuffled = np.random.default_rng(config.seed).permutation(len(x))
        held_out, train = np.split(shuffled, [max(1, round(_HELD_OUT * len(x)))])
        features = torch.from_numpy((x - self._shift) / self._scale)
        target = torch.from_numpy((y - self._target[0]) / self._target[1]).float()
        net = self._train(features, target, torch.from_numpy(train), torch.from_numpy(held_out))
        self._weights = [
            (layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy())
            for layer in net
            if isinstance(layer, nn.Linear)
        ]
        return np.asarray(latency_ms[held_out] / self.estimate(inputs[held_out]))

    def _train(self, x: torch.Tensor, y: torch.Tensor, train: torch.Tensor, held_out: torch.Tensor) -> nn.Sequential:
        config = self.config
        x, y, held_out = x.to(self.device), y.to(self.device), held_out.to(self.device)
        with own_streams(config.seed, self.device), torch.inference_mode(False), torch.enable_grad():
            widths = [x.shape[1], *[config.hidden] * config.layers]
            hidden = [part for a, b in itertools.pairwise(widths) for part in (nn.Linear(a, b), nn.ReLU())]
            net = nn.Sequential(*hidden, nn.Linear(config.hidden, 1)).to(self.device)
            drawn = [train[torch.randperm(len(train))[: config.batch]] for _ in range(config.steps)]
            batches = torch.stack(drawn).to(self.device)
            optimiser = torch.optim.Adam(net.parameters(), lr=config.lr)
            loss_of = nn.SmoothL1Loss(beta=0.1) if config.logarithmic else nn.MSELoss()
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.steps)
            weights: list[torch.Tensor] = list(net.parameters())
            best, best_loss = [x.detach().clone() for x in weights], torch.tensor(float("inf"), device=self.device)
            for step, batch in enumerate(batches, 1):
                loss = loss_of(net(x[batch])[:, 0], y[batch])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                if not config.logarithmic:
                    continue
                schedule.step()
                if step % _CHECK_EVERY == 0 or step == config.steps:
                    with torch.no_grad():
                        held_out_loss = (net(x[held_out])[:, 0] - y[held_out]).abs().mean()
                        better = held_out_loss < best_loss  # stays on the device, as the best weights do
                        best = [torch.where(better, now, then) for now, then in zip(weights, best, strict=True)]
                        best_loss = torch.where(better, held_out_loss, best_loss)
            if config.logarithmic:
                with torch.no_grad():
                    torch._foreach_copy_(weights, best)
        return net.cpu()

    def estimate(self, inputs: NDArray[Any]) -> Floats:
        x = (self._summary(inputs) - self._shift) / self._scale
        for weight, bias in self._weights[:-1]:
            x = np.maximum(x @ weight + bias, 0)
        weight, bias = self._weights[-1]
        value = (x @ weight + bias)[:, 0].astype(np.float64) * self._target[1] + self._target[0]
        return np.maximum(np.exp(value) if self.config.logarithmic else value, self.floor_ms)

    def _summary(self, inputs: NDArray[Any]) -> NDArray[np.float32]:
        summary = self.space.encode_rows(inputs, "summary") if self.source == "rows" else inputs
        return np.asarray(summary, np.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        arrays = {"shift": self._shift, "scale": self._scale}
        for index, (weight, bias) in enumerate(self._weights):
            arrays |= {f"weight{index}": weight, f"bias{index}": bias}
        return {"config": asdict(self.config), "target": list(self._target)}, arrays

    def restore(self, settings: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        self.config = MLPConfig(**settings["config"])
        self._target = (float(settings["target"][0]), float(settings["target"][1]))
        self._shift, self._scale = arrays["shift"].astype(np.float32), arrays["scale"].astype(np.float32)
        self._weights = [
            (arrays[f"weight{index}"].astype(np.float32), arrays[f"bias{index}"].astype(np.float32))
            for index in range(self.config.layers + 1)
        ]


class HATModel(MLPModel):
    """Multi-layer perceptron with the hyper-parameters of HAT."""

    name = "hat-mlp"
    config_class = HATConfig
