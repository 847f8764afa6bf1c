"""How a predictor is trained."""

from __future__ import annotations

from dataclasses import dataclass

from nas_core.checks import Range, check_fields
from nas_core.errors import ConfigError, unknown_choice
from nas_core.predictor.precision import CHOICES

__all__ = ["TrainConfig"]

_RANGES = {
    "epochs": Range(1),
    "batch_size": Range(1),
    "copies": Range(1, 2),
    "lr": Range(0, without=(0,)),
    "warmup": Range(0, 1, without=(1,)),
    "final_lr": Range(0, 1),
    "weight_decay": Range(0),
    "rank_weight": Range(0),
    "pair_weight": Range(0),
    "pair_temperature": Range(0, without=(0,)),
    "consistency_weight": Range(0),
    "ema": Range(0, 1, without=(1,)),
    "clip": Range(0),
    "seed": Range(0),
}


@dataclass(frozen=True)
class TrainConfig:
    """How a predictor is trained; the defaults are the paper's for accuracy (its supplement, 2.1)."""

    epochs: int = 3000
    """Passes over the training graphs."""
    batch_size: int = 128
    """Graphs per step."""
    copies: int = 2
    """How often each is in its batch: two for the consistency loss."""
    lr: float = 1e-4
    """Peak learning rate of AdamW."""
    warmup: float = 0.1
    """Share of the steps until the peak, linear from 0: as in the released code the first step has rate 0, it only
    fills AdamW's moments."""
    decay: str = "cosine"
    """Shape of the learning rate after the peak: cosine or linear."""
    final_lr: float = 0.1
    """Learning rate at the end, as a share of the peak. The paper names the cosine alone; its released code stops at a
    tenth, which the default follows so that the recipe ``paper`` trains as the published models did."""
    weight_decay: float = 0.01
    """Weight decay of matrices; vectors (norms, biases) have none."""
    loss: str = "mse"
    """mse; for latencies relative: squared relative error, or log: squared difference of logarithms, which is as strict
    with predictions below as above."""
    rank_weight: float = 0.2
    """Weight of the L1 loss of differences to one other graph each."""
    pair_weight: float = 0.0
    """Weight of the logistic loss of all pairs in the batch."""
    pair_temperature: float = 0.02
    """Difference of predictions that the logistic loss sees as one."""
    consistency_weight: float = 1.0
    """Weight of the L1 distance between the two predictions of a graph, which differ by dropout."""
    ema: float = 0.99
    """Decay of the averaged weights, which predict in the end; 0: no average."""
    clip: float = 0.0
    """Largest norm of the gradient; 0: no limit."""
    equal_sizes: bool = True
    """A batch holds graphs of one size (the released code's rule; it sets the number of steps), or of all sizes."""
    precision: str = "auto"
    """fp32, tf32, bf16 or fp16 for matrix products; auto: bf16 where the device computes in it, else fp32."""
    seed: int = 0
    """Seed of weights, dropout and batches."""

    def __post_init__(self) -> None:
        check_fields(self, "training", _RANGES)
        for name, allowed in (
            ("loss", ("mse", "relative", "log")),
            ("decay", ("cosine", "linear")),
            ("precision", CHOICES),
        ):
            if getattr(self, name) not in allowed:
                raise unknown_choice(f"{name} of training", getattr(self, name), allowed)
        if self.consistency_weight and self.copies == 1:
            raise ConfigError(
                f"consistency_weight is {self.consistency_weight:g} with one copy of each graph; expected copies=2, or"
                " consistency_weight=0"
            )
