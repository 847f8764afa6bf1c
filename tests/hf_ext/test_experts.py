"""Experts of the feed-forward layers of supernets of transformers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from hf_ext.network import read_supernet
from nas_core.errors import CheckpointError, ConfigError
from nas_core.layers import MoSConfig
from nas_core.supernet import open_supernet
from tests.hf_ext.test_trainer import trainer, weights

KINDS = ("layer", "neuron")


def outputs(network: Any, batch: Any) -> list[torch.Tensor]:
    space = network.space
    with torch.no_grad():
        selected = [network.select(architecture) for architecture in (space.largest(), space.smallest())]
        return [network(subnet, batch, training=False).last_hidden_state for subnet in selected]


@pytest.fixture
def batch() -> dict[str, torch.Tensor]:
    tokens = torch.randint(2, 20, (2, 5), generator=torch.Generator().manual_seed(0))
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}


@pytest.mark.parametrize("kind", KINDS)
def test_experts_change_no_subnet_until_they_are_trained(kind: str, family: Path, batch: Any) -> None:
    network = read_supernet(family)
    before = outputs(network, batch)
    network.add_experts(MoSConfig(kind=kind, experts=3))
    torch.testing.assert_close(outputs(network, batch), before)


def test_mixed_differences_are_added_to_slices_of_the_weights(family: Path) -> None:
    network = read_supernet(family)
    network.add_experts(MoSConfig(kind="neuron", encoding="layers"))
    experts, smallest = network.experts, network.space.smallest()
    assert experts is not None
    plain = network.subnet(network.select(smallest).sizes, network.select(smallest).layers)
    for parameter in experts.differences.values():
        torch.nn.init.normal_(parameter)
    encoding = torch.from_numpy(network.space.encode(smallest, "layers")[0])
    mixed = network.select(smallest).weights
    layer = "encoder.layer.0.intermediate.dense"
    rows, columns = plain.weights[f"{layer}.weight"].shape
    coefficients = experts.routers[layer.replace(".", "/")](encoding, rows)
    difference = experts.differences[f"{layer}.weight".replace(".", "/")][:, :rows, :columns]
    expected = plain.weights[f"{layer}.weight"] + torch.einsum("om,moi->oi", coefficients, difference)
    torch.testing.assert_close(mixed[f"{layer}.weight"], expected)
    bias = experts.differences[f"{layer}.bias".replace(".", "/")][:, :rows]
    torch.testing.assert_close(mixed[f"{layer}.bias"], plain.weights[f"{layer}.bias"] + (coefficients.T * bias).sum(0))
    changed = {name for name in mixed if not torch.equal(mixed[name], plain.weights[name])}
    assert {name.split(".", 3)[3] for name in changed} == {
        "intermediate.dense.weight", "intermediate.dense.bias", "output.dense.weight"
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_training_with_experts_is_saved_resumed_and_extracted(
    kind: str, family: Path, texts: Path, batch: Any, tmp_path: Path
) -> None:
    from transformers import AutoModel

    training = trainer(family, texts, tmp_path / "whole", mos=MoSConfig(kind=kind))
    training.train()
    differences = training.supernet.experts.differences
    assert all(parameter.abs().max() > 0 for parameter in differences.values())
    saved = tmp_path / "whole" / "checkpoint-4"
    expected = outputs(training.supernet, batch)
    torch.testing.assert_close(outputs(read_supernet(saved), batch), expected)

    resumed = trainer(family, texts, tmp_path / "resumed", mos=MoSConfig(kind=kind))
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-2"))
    for name, tensor in weights(tmp_path / "resumed" / "checkpoint-4").items():
        torch.testing.assert_close(tensor, weights(saved)[name], msg=name)

    supernet: Any = open_supernet(saved)
    supernet.extract(supernet.space.smallest(), tmp_path / "small")
    with torch.no_grad():
        static = AutoModel.from_pretrained(tmp_path / "small").eval()(**batch).last_hidden_state
    order = torch.argsort(supernet.elastic.channels[: static.shape[-1]])
    torch.testing.assert_close(static, expected[1][..., order])


def test_wrong_experts(family: Path, texts: Path, tmp_path: Path) -> None:
    trainer(family, texts, tmp_path / "run", 2, mos=MoSConfig(kind="layer")).train()
    saved = tmp_path / "run" / "checkpoint-2"
    with pytest.raises(ConfigError, match="leave mos out"):
        trainer(saved, texts, tmp_path / "again", mos=MoSConfig(kind="layer"))
    shutil.copy(family / "model.safetensors", saved)
    with pytest.raises(CheckpointError, match="experts"):
        read_supernet(saved)
