"""Experts of the feed-forward layers of supernets of transformers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from hf_ext.network import read_supernet
from nas_core.errors import CheckpointError, ConfigError
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.layers import MoSConfig
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.host import open_trained
from tests.hf_ext.test_trainer import trainer, weights
from tests.hf_ext.tiny import save

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
    for router in experts.routers.values():
        torch.nn.init.normal_(router.out.weight)
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
    experts = training.supernet.experts
    first, second = training.supernet.space.largest(), training.supernet.space.smallest()
    mixtures = [
        next(iter(experts.routers.values()))(torch.from_numpy(experts.space.encode(x)[0]), 3) for x in (first, second)
    ]
    assert (mixtures[0] - mixtures[1]).abs().max() > 1e-4, "the router distinguishes architectures"
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
    settings = read_json(saved / "nas_ext.json")
    assert settings["mos"]["experts"] == 2
    for mos in ({"kind": "layer", "experts": 3}, {"kind": "neuron"}, None):
        changed = {**settings, "mos": mos} if mos else {k: v for k, v in settings.items() if k != "mos"}
        write_json(saved / "nas_ext.json", changed)
        with pytest.raises(CheckpointError, match=r"other experts than its nas_ext.json says, such as experts\."):
            read_supernet(saved)
    for mos in ({"kind": "none"}, {"kind": "foo"}, {"kind": "layer", "encoding": "foo"}, {"kind": "layer", "size": 1}):
        write_json(saved / "nas_ext.json", {**settings, "mos": mos})
        with pytest.raises(CheckpointError, match=r"nas_ext\.json is damaged"):
            read_supernet(saved)
    write_json(saved / "nas_ext.json", settings)
    shutil.copy(family / "model.safetensors", saved)
    with pytest.raises(CheckpointError, match="other experts"):
        read_supernet(saved)


def test_evaluation_uses_the_largest_subnet(texts: Path, tmp_path: Path) -> None:
    convert(open_trained(save("BertForMaskedLM", tmp_path / "trained")), tmp_path / "family")
    training = trainer(tmp_path / "family", texts, tmp_path / "run", mos=MoSConfig(kind="layer"))
    for router in training.supernet.experts.routers.values():
        torch.nn.init.normal_(router.out.bias, std=9)
    batch = dict(next(iter(training.get_train_dataloader())))
    batch["labels"] = batch["input_ids"]
    with torch.no_grad():
        loss, output = training.compute_loss(training.model, batch, return_outputs=True)
        largest = training.supernet.select(training.supernet.space.largest())
        expected = training.supernet(largest, batch, training=False)
        plain = training.model.eval()(**batch)
    torch.testing.assert_close(loss, expected.loss)
    torch.testing.assert_close(output["logits"], expected.logits)
    assert abs(float(loss - plain.loss)) > 1e-3
