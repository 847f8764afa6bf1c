"""Settings and examples of supernets and networks that are trained for a comparison with a supernet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_ext.checkpoint import read_state
from fairseq_ext.supernets.training import SETTINGS
from nas_core.errors import ConfigError
from nas_core.layers import MoSConfig
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


def test_other_experts_have_the_supernets_other_settings(changed: Changed, tmp_path: Path) -> None:
    supernet = open_supernet(changed("task", _name="supernet_translation"))
    experts: MoSConfig = supernet.experts
    for count in (3, 1):
        supernet.supernet_command(tmp_path, replace(experts, experts=count, router_temperature=0.5), {})
        model = read_state(tmp_path / SETTINGS)["cfg"]["model"]
        assert (model.mos, model.mos_experts, model.mos_router_temperature) == (experts.kind, count, 0.5)


@pytest.mark.parametrize("options", [{"finetune_from_model": "weights.pt"}, {"converted": "a digest"}])
def test_a_supernet_that_began_with_weights_has_no_siblings(
    changed: Changed, tmp_path: Path, options: dict[str, str]
) -> None:
    supernet = open_supernet(changed("checkpoint" if "converted" not in options else "model", **options))
    with pytest.raises(ConfigError):
        supernet.supernet_command(tmp_path, replace(supernet.experts, experts=3), {})


def test_networks_are_evaluated_by_the_loss_of_the_supernet(changed: Changed, trained: Callable[[str], Path]) -> None:
    supernet, other = open_supernet(trained("layer"), valid_sentences=10), changed("criterion", label_smoothing=0.5)
    expected = supernet.evaluate(supernet.space.largest())
    assert supernet.evaluate_network(other) == pytest.approx(expected)
    assert open_supernet(other, valid_sentences=10).evaluate(supernet.space.largest())["loss"] > expected["loss"] + 0.1
