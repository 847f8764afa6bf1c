"""What one of several workers runs in the tests: trainings that a JSON file lists, and what each of them saw.

``python -m tests.timm_ext.trained_by_workers TASKS.json FOLDER``. Images are not augmented, so that trainings of one
and of several workers can be compared; one worker alone calls :func:`trained`.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from timm.data import create_loader

from nas_core.space import Architecture
from timm_ext import building
from timm_ext.options import TrainConfig
from timm_ext.train import Trainer
from timm_ext.workers import join, leave


@contextmanager
def plain_images() -> Iterator[None]:
    """Loaders in this block do not augment."""
    before = building.create_loader  # type: ignore[attr-defined]
    building.create_loader = functools.partial(create_loader, no_aug=True)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        building.create_loader = before  # type: ignore[attr-defined]


def trained(settings: dict[str, Any], stop: int = 0) -> dict[str, Any]:
    """Train and say how; with ``stop`` the run is interrupted before that update, and continued by a new trainer."""
    seen: dict[int, list[dict[str, Any]]] = {}
    for last in ([stop] if stop else []) + [0]:
        trainer = Trainer(TrainConfig(**settings))
        original = trainer.architectures_of

        def noted(update: int, original: Any = original, last: int = last) -> list[Architecture]:
            if last and update == last:
                raise KeyboardInterrupt
            results: list[Architecture] = original(update)
            seen[update] = [one.to_dict() for one in results]
            return results

        trainer.architectures_of = noted  # type: ignore[method-assign]
        try:
            with plain_images():
                trainer.run()
        except KeyboardInterrupt:
            assert last
    state = {"model": trainer.model.state_dict()}
    if trainer.average is not None:
        state["average"] = trainer.average.module.state_dict()
    untouched = sorted(name for name, one in trainer.model.named_parameters() if not trainer.optimizer.state.get(one))
    return {"seen": seen, "history": trainer.history, "untouched": untouched, "state": state}


if __name__ == "__main__":
    tasks, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    rank = join("cpu").rank
    for name, (settings, stop) in tasks.items():
        result = trained(settings, stop)
        torch.save(result, folder / f"{name}.{rank}.pt")
    leave()
