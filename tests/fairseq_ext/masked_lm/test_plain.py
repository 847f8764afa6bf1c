"""Subnets as checkpoints of fairseq's own ``--arch roberta``, loaded by a process without this project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nas_core.cli import main
from nas_core.errors import ConfigError
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.host import open_trained
from tests.fairseq_ext.distillation.teachers import as_distilled, left_of_teacher
from tests.fairseq_ext.masked_lm.training import FORMS, MASKED, PLAIN
from tests.fairseq_ext.running import fairseq_alone, passed

Roberta = Callable[..., Path]
TOKENS = torch.tensor([[0, 7, 5, 9, 2, 1], [0, 4, 6, 10, 11, 2]])
HEAD = "sentence_classification_head"


def narrow(space: Any, **genes: Any) -> Architecture:
    """Width 12 with three heads of 4 numbers, one layer."""
    own = {"embed_dim": 12, "layers": 1, "ffn_dim": [18], "heads": [3]}
    architecture: Architecture = space.validate(Architecture({**space.largest().to_dict(), **own, **genes}))
    return architecture


@pytest.fixture(scope="module")
def supernets(
    roberta: Roberta, text: Path, labelled: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, str, Path]]:
    """Name -> supernet, classification head, data."""
    folder = tmp_path_factory.mktemp("supernets")
    made = {name: (roberta(*FORMS[name]), "", text) for name in FORMS}
    made["classifier"] = (roberta(task="sentence_prediction"), HEAD, labelled)
    for name, (path, head, data) in made.items():
        trained = open_trained(path, data=str(data), calibrate=1)
        convert(trained, folder / f"{name}.pt", importance_by="activation", calibrate=1)
        if not head:
            as_distilled(folder / f"{name}.pt", "distilled_masked_lm")
        made[name] = folder / f"{name}.pt", head, data
    return made


def extracted(supernet: Path, architecture: Architecture, folder: Path) -> Path:
    architecture.save(folder / "narrow.json")
    out = folder / f"plain-{supernet.name}"
    command = ["extract", "--checkpoint", supernet, "--arch", folder / "narrow.json", "--out", out, "--plain"]
    assert main([*map(str, command)]) == 0
    return out


def test_fairseq_alone_computes_the_same(supernets: dict[str, tuple[Path, str, Path]], tmp_path: Path) -> None:
    cases, expected = [], []
    for path, head, data in supernets.values():
        supernet: Any = open_supernet(path)
        architecture = narrow(supernet.space)
        supernet.extract(architecture, tmp_path / "subnet.pt")
        assert left_of_teacher(tmp_path / "subnet.pt") == ("sentence_prediction" if head else "masked_lm", set())
        cases.append({
            "data": str(data), "path": str(extracted(path, architecture, tmp_path)), "inputs": [TOKENS],
            "options": {"classification_head_name": head or None},
            "criterion": "SentencePredictionCriterion" if head else "MaskedLmLoss",
        })  # fmt: skip
        with torch.no_grad(), supernet.model.using(architecture):
            expected.append(supernet.model(TOKENS, **cases[-1]["options"])[0])
    read = TOKENS.ne(1)
    for name, logits, reference in zip(supernets, fairseq_alone(tmp_path, cases), expected, strict=True):
        assert logits.shape == reference.shape
        difference = (logits - reference)[read if reference.ndim == 3 else slice(None)].abs().max()
        assert float(difference / reference.abs().max()) <= 1e-5, name


def test_it_is_trained_by_fairseq_and_converted_again(
    supernets: dict[str, tuple[Path, str, Path]], tmp_path: Path, text: Path
) -> None:
    path, _, data = supernets["prenorm"]
    plain = extracted(path, narrow(open_supernet(path).space), tmp_path)
    again = open_trained(plain, data=str(data))
    assert again.difference(again.net) <= 1e-5 and again.space.largest()["embed_dim"] == 12
    sizes = ["--encoder-layers", 1, "--encoder-embed-dim", 12, "--encoder-ffn-embed-dim", 18]
    options = [*sizes, "--encoder-attention-heads", 3, "--arch", "roberta_prenorm", "--activation-fn", "gelu_accurate"]
    passed("train", text, "--task", "masked_lm", *MASKED, *PLAIN, *options, "--finetune-from-model", plain,
               "--save-dir", tmp_path / "run")  # fmt: skip


def test_networks_that_fairseq_does_not_have(supernets: dict[str, tuple[Path, str, Path]], tmp_path: Path) -> None:
    supernet = open_supernet(supernets["base"][0])
    for genes, part in [
        ({"layers": 2, "ffn_dim": [18, 24], "heads": [3, 3]}, "ffn_dim is 18, 24, in fairseq all are equal"),
        ({"heads": [2]}, "queries are 8 wide, channels 12; in fairseq both are equal"),
    ]:
        with pytest.raises(ConfigError, match=part):
            supernet.extract_plain(narrow(supernet.space, **genes), tmp_path / "a.pt")


def test_a_network_of_several_languages_is_converted(roberta: Roberta, tmp_path: Path, text: Path) -> None:
    content = torch.load(roberta(), weights_only=True)
    content["cfg"]["task"]["_name"] = "multilingual_masked_lm"
    torch.save(content, tmp_path / "changed.pt")
    trained = open_trained(tmp_path / "changed.pt", data=str(text))
    assert trained.difference(trained.net) <= 1e-5
