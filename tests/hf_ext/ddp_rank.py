"""One of two processes that train a supernet: ``python -m tests.hf_ext.ddp_rank FAMILY TEXTS OUT``.

It stores the weights after two updates, each of two accumulated batches, and the batches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch

from tests.hf_ext.test_trainer import trainer

CHANGES = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "optim": "sgd", "max_grad_norm": 0}


def main() -> None:
    family, texts, out = map(Path, sys.argv[1:])
    torch.set_num_threads(1)
    changes = {**CHANGES, "ddp_backend": "gloo", "save_only_model": True}
    training = trainer(family, texts, out / f"run{os.environ['RANK']}", 2, changes)
    batches, step = list[dict[str, Any]](), training.training_step

    def training_step(model: Any, inputs: dict[str, Any], *rest: Any) -> Any:
        batches.append({name: tensor.clone() for name, tensor in inputs.items()})
        return step(model, inputs, *rest)

    training.training_step = training_step
    training.train()
    content = {"weights": training.supernet.model.state_dict(), "batches": batches}
    torch.save(content, out / f"{os.environ['RANK']}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
