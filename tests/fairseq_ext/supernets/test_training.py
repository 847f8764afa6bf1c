"""Loss and examples of networks that are trained for a comparison with a supernet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_ext.supernets.training import LAST
from nas_core.supernet import open_supernet

Changed = Callable[..., Path]


@pytest.fixture
def changed(trained: Callable[[str], Path], tmp_path: Path) -> Changed:
    """``changed(group, name=value, ..)``: a supernet whose settings say that it was trained otherwise."""

    def made(group: str, **options: Any) -> Path:
        state = torch.load(trained("layer"), weights_only=False)
        settings = state["cfg"][group]
        (settings if isinstance(settings, dict) else vars(settings)).update(options)
        vars(state["cfg"]["model"]).update({name: value for name, value in options.items() if name != "_name"})
        torch.save(state, tmp_path / "changed.pt")
        return tmp_path / "changed.pt"

    return made


def test_networks_are_evaluated_by_the_loss_of_the_supernet(changed: Changed, trained: Callable[[str], Path]) -> None:
    supernet, other = open_supernet(trained("layer"), valid_samples=10), changed("criterion", label_smoothing=0.5)
    expected = supernet.evaluate(supernet.space.largest())
    (other.parent / LAST).symlink_to(other)
    assert supernet.evaluate_standalone(other.parent)[0] == pytest.approx(expected)
    assert open_supernet(other, valid_samples=10).evaluate(supernet.space.largest())["loss"] > expected["loss"] + 0.1
