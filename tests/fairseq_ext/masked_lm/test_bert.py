"""Supernets of BERT encoders: trained by fairseq's own trainer, searched, extracted, exported, and trained on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from fairseq_ext.host import HOST
from nas_core.cli import main
from nas_core.errors import ConfigError
from nas_core.files.reading import read_json
from nas_core.space import SearchSpace, save_space
from nas_core.space.bert import bert_space
from tests.contracts.host import HostContract
from tests.fairseq_ext.running import MASKED, passed

SPACES = {
    "shaped": bert_space(
        "shaped",
        layers=(2, 1),
        hidden_dims=(24, 16, 12, 8),
        heads=(2,),
        ffn_dims=(32,),
        sequence_length=12,
        outer_dim=24,
    ),
    "equal": bert_space(
        "equal", layers=(2,), hidden_dims=(24, 16), heads=(4, 2), ffn_ratios=(2.0, 1.5), sequence_length=12
    ),
}
TRAINED = [("shaped", "neuron", "spos"), ("equal", "layer", "sandwich")]
Supernet = Callable[[str, str], Path]


@pytest.fixture(scope="module")
def bert(text: Path, options: list[object], tmp_path_factory: pytest.TempPathFactory) -> Supernet:
    """``bert(space, experts)``: the checkpoint of a supernet that was trained a little."""
    how = {(space, mos): sampling for space, mos, sampling in TRAINED}

    @cache
    def checkpoint(space: str, mos: str) -> Path:
        folder = tmp_path_factory.mktemp(f"{space}-{mos}")
        save_space(SPACES[space], folder / "space.yml")
        arch = "mos_bert" if space == "equal" else "supershaper_bert"
        passed("train", text, *options, *MASKED, "--task", "supernet_masked_lm", "--arch", arch, "--mos", mos,
                   "--search-space", folder / "space.yml", "--sampling", how[space, mos], "--max-update", 30,
                   "--save-dir", folder)  # fmt: skip
        return folder / "checkpoint_last.pt"

    return checkpoint


class TestBertHost(HostContract):
    host = "fairseq"

    @pytest.fixture
    def checkpoint(self, bert: Supernet) -> Path:
        return bert("shaped", "neuron")


def middle(space: SearchSpace) -> object:
    """An architecture that is neither the smallest nor the largest."""
    genes = {**space.largest().to_dict(), "hidden_dim": [16, 8] if space.name == "shaped" else 16}
    return type(space.largest())(genes)


@pytest.mark.parametrize(("space", "mos", "sampling"), TRAINED)
def test_a_supernet_learns_and_its_static_networks_are_its_subnets(
    bert: Supernet, space: str, mos: str, sampling: str, tmp_path: Path
) -> None:
    supernet = HOST.open(bert(space, mos))
    assert supernet.space == SPACES[space] and supernet.task["kind"] == "bert"
    for index, architecture in enumerate((supernet.space.smallest(), middle(SPACES[space]), supernet.space.largest())):
        expected = supernet.evaluate(architecture)  # type: ignore[arg-type]
        assert expected["loss"] < 3.9, "fewer than 15 words are as likely"
        count = supernet.extract(architecture, tmp_path / f"{index}.pt")  # type: ignore[arg-type]
        static = HOST.open(tmp_path / f"{index}.pt")
        assert static.space.cardinality() == 1 and static.space.largest() == architecture
        assert static.evaluate(static.space.largest())["loss"] == pytest.approx(expected["loss"], abs=1e-5)
        assert count == sum(parameter.numel() for parameter in static.model.parameters())  # type: ignore[attr-defined]


def test_fairseqs_roberta_and_hugging_faces_bert(bert: Supernet, tmp_path: Path) -> None:
    extract = ["extract", "--checkpoint", str(bert("equal", "layer")), "--arch", "smallest"]
    assert main([*extract, "--out", str(tmp_path / "plain.pt"), "--plain"]) == 0
    state = torch.load(tmp_path / "plain.pt", weights_only=True)["model"]
    assert state["encoder.sentence_encoder.layers.1.fc1.weight"].shape == (24, 16)
    assert main([*extract, "--out", str(tmp_path / "bert"), "--hugging-face"]) == 0
    config = read_json(tmp_path / "bert" / "config.json")
    assert (config["hidden_size"], config["num_hidden_layers"], config["intermediate_size"]) == (16, 2, 24)
    words = (tmp_path / "bert" / "vocab.txt").read_text().split()
    assert len(words) == config["vocab_size"] and words[config["pad_token_id"]] == "<pad>" and words[-1] == "<mask>"
    own = load_file(tmp_path / "bert" / "model.safetensors")
    assert own["bert.encoder.layer.1.intermediate.dense.weight"].equal(
        state["encoder.sentence_encoder.layers.1.fc1.weight"]
    )
    shaped = HOST.open(bert("shaped", "neuron"))
    for extract in (shaped.extract_plain, shaped.extract_bert):
        with pytest.raises(ConfigError, match="linear maps"):
            extract(SPACES["shaped"].largest(), tmp_path / "no")
