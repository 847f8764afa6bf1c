"""Inner loops that the host runs ahead of: nothing is read back in a training step, nor in scoring before its end."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nas_core.graph import Graphs
from nas_core.predictor import NNFormer, NNFormerPredictor
from nas_core.predictor.nn_former.scorer import Scorer
from nas_core.predictor.training import Trainer
from tests.host_reads import host_reads, no_host_reads
from tests.predictor.accelerated import as_accelerator  # noqa: F401 - a fixture
from tests.predictor.graphs import random_graphs, sizes_of_operations

CELLS = random_graphs((5, 6, 7) * 6, seed=1)
NETWORKS = random_graphs((70, 90, 66, 80, 75, 64, 120, 68), seed=2, features=True, density=0.04)
SMALL: dict[str, Any] = {"dim": 32, "depth": 2, "epochs": 100, "batch_size": 5}
KINDS: dict[str, tuple[Graphs, dict[str, Any]]] = {
    "dense": (CELLS, {"recipe": "paper"}),
    "dense, ensemble": (CELLS, {"recipe": "ensemble"}),
    "packed": (NETWORKS, {"recipe": "latency"}),
    "packed, logarithm": (NETWORKS, {"recipe": "network-latency"}),
    "dense, large": (NETWORKS, {"recipe": "paper", "targets": "normal"}),
}
pytestmark = pytest.mark.usefixtures("as_accelerator")


def trainer_of(kind: str, device: str, precision: str = "fp32") -> Trainer:
    graphs, settings = KINDS[kind]
    predictor = NNFormerPredictor(**{**SMALL, **settings, "precision": precision})
    predictor.prepare(graphs)
    torch.manual_seed(0)
    model = NNFormer(predictor.recipe.model).to(device)
    return Trainer(model, graphs, sizes_of_operations(graphs) + 0.3, predictor.recipe.train)


def checked(trainer: Trainer, device: str) -> None:
    """Two epochs that find their memory there; the loss is looked at every 50 steps, so not among these."""
    steps = trainer.steps()
    for _ in range(2 * trainer.steps_per_epoch):
        next(steps)
    assert trainer.done + 2 * trainer.steps_per_epoch < 50
    with no_host_reads(device):
        for _ in range(2 * trainer.steps_per_epoch):
            next(steps)


@pytest.mark.parametrize(
    ("kind", "precision"), [*((kind, "fp32") for kind in KINDS), ("dense", "bf16"), ("packed", "bf16")]
)
def test_training_steps(device: str, kind: str, precision: str) -> None:
    checked(trainer_of(kind, device, precision), device)


def test_a_check_of_the_loss_is_seen(device: str) -> None:
    trainer = trainer_of("dense", device)
    with host_reads(device) as reads:
        for _, _ in zip(range(50), trainer.steps(), strict=False):
            pass
    assert len(reads) == 1, reads


@pytest.mark.parametrize("kind", KINDS)
def test_scoring_reads_its_result_alone(device: str, kind: str) -> None:
    graphs, _ = KINDS[kind]
    scorer = Scorer(trainer_of(kind, device).model, "fp32")
    scorer(graphs)
    with host_reads(device) as reads:
        scorer(graphs)
    assert len(reads) == (1 if torch.device(device).type == "cuda" else 0), reads
