"""A supernet of a trained model, and a step with a teacher, on each kind of device."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.timm_ext.running import config
from tests.timm_ext.trained.tiny import images, vit
from timm_ext import elastic
from timm_ext.train import Trainer


@pytest.mark.parametrize("options", [{}, {"distill_hidden": 0.5, "distill_attention": 0.5}])
def test_it_is_taken_over_and_trained_there(device: str, options: dict[str, float], npz: Path, tmp_path: Path) -> None:
    model = vit()
    supernet = elastic(model, importance_by="gradient", calibrate=1, data=npz, device=device,
                       out=tmp_path / "supernet.pt")  # fmt: skip
    x = images(model).to(device)
    with torch.no_grad():
        torch.testing.assert_close(supernet(x), model(x), atol=1e-4, rtol=1e-4)
    teacher = str(tmp_path / "supernet.pt")
    settings = {"model": "", "search_space": "", "init": teacher, "teacher": teacher, "device": device, **options}
    trainer = Trainer(config(npz, tmp_path / "run", **settings, epochs=1))
    assert trainer.run()["loss"] > 0
    assert next(trainer.model.parameters()).device.type == torch.device(device).type
