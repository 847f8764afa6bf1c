"""Subnets as checkpoints of fairseq's own ``--arch transformer``, loaded by a process that knows nothing of this
project."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture

from fairseq_ext.extraction import check_plain, plain_weights
from fairseq_ext.families import TRANSLATION
from nas_core.cli import main
from nas_core.errors import ConfigError
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.host import open_trained
from tests.fairseq_ext.distillation.teachers import as_distilled, left_of_teacher
from tests.fairseq_ext.elastic.conftest import FORMS
from tests.fairseq_ext.running import DECODING, SPACE, build, fairseq_alone, passed

SOURCE = torch.tensor([[1, 1, 7, 5, 9, 2], [8, 4, 6, 10, 11, 2]])
TARGET = torch.tensor([[2, 4, 8, 6, 5], [2, 9, 7, 12, 3]])


def narrow(space: Any, **genes: Any) -> Architecture:
    """Widths of 12 with three heads of 4 numbers, one decoder layer."""
    largest = space.largest().to_dict()
    largest |= {"encoder.embed_dim": 12, "decoder.embed_dim": 12, "decoder.layers": 1}
    largest |= {"encoder.ffn_dim": [18, 18], "encoder.self_heads": [3, 3]}
    largest |= {"decoder.ffn_dim": [16], "decoder.self_heads": [3], "decoder.cross_heads": [3]}
    largest |= {"decoder.arbitrary_cross": [-1]}
    architecture: Architecture = space.validate(Architecture({**largest, **genes}))
    return architecture


@pytest.fixture(scope="module")
def supernets(
    transformer: Callable[..., Path], joined: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("supernets")
    for name in ("post-norm", "pre-norm", "learned"):
        trained = open_trained(transformer(*FORMS[name]), data=str(joined), calibrate=1)
        convert(trained, folder / f"{name}.pt", importance_by="activation", calibrate=1)
        as_distilled(folder / f"{name}.pt", "distilled_label_smoothed_cross_entropy")
    return {path.stem: path for path in sorted(folder.glob("*.pt"))}


@pytest.fixture(scope="module")
def plain(supernets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("plain")
    for name, path in supernets.items():
        narrow(open_supernet(path).space).save(folder / "narrow.json")
        command = ["extract", "--checkpoint", path, "--arch", folder / "narrow.json", "--out", folder / f"{name}.pt"]
        assert main([*map(str, command), "--plain"]) == 0
    return {path.stem: path for path in sorted(folder.glob("*.pt"))}


def test_fairseq_alone_computes_the_same(
    plain: dict[str, Path], supernets: dict[str, Path], joined: Path, tmp_path: Path
) -> None:
    common = {"data": str(joined), "inputs": [SOURCE, None, TARGET], "options": {}}
    cases = [
        {**common, "path": str(path), "criterion": "LabelSmoothedCrossEntropyCriterion"} for path in plain.values()
    ]
    assert all(left_of_teacher(path) == ("label_smoothed_cross_entropy", set()) for path in plain.values())
    for (name, path), logits in zip(supernets.items(), fairseq_alone(tmp_path, cases), strict=True):
        supernet: Any = open_supernet(path)
        with torch.no_grad(), supernet.model.using(narrow(supernet.space)):
            expected = supernet.model(SOURCE, None, TARGET)[0]
        difference = (logits - expected).abs().max() / expected.abs().max()
        assert logits.shape[1] == TARGET.shape[1] and float(difference) <= 1e-5, name


def test_it_translates_and_is_converted_again(plain: dict[str, Path], joined: Path) -> None:
    done = passed("generate", joined, "--path", plain["learned"], *DECODING, "--beam", 1)
    assert sorted(done.hypotheses()) == list(range(20))
    again = open_trained(plain["learned"], data=str(joined))
    assert again.difference(again.net) <= 1e-5
    assert again.space.largest()["encoder.embed_dim"] == 12


def test_networks_that_fairseq_does_not_have(supernets: dict[str, Path], tmp_path: Path) -> None:
    supernet = open_supernet(supernets["learned"])
    for genes, part in [
        ({"encoder.ffn_dim": [18, 24]}, "encoder.ffn_dim is 18, 24, in fairseq all are equal"),
        ({"decoder.cross_heads": [2]}, "decoder.self_heads and decoder.cross_heads is 3, 2"),
        ({"encoder.self_heads": [2, 2]}, "encoder queries are 8 wide, channels 12"),
    ]:
        with pytest.raises(ConfigError) as error:
            supernet.extract_plain(narrow(supernet.space, **genes), tmp_path / "a.pt")
        assert part in str(error.value) and "\n" not in str(error.value) and not (tmp_path / "a.pt").exists()


def test_subnets_of_other_supernets_are_plain_as_well(pair: Any) -> None:
    """In HAT's space queries have one width, and positions are the first channels of the supernet's sinusoids."""
    model = build(pair, max_source_positions=30, max_target_positions=30).eval()
    genes = SPACE.largest().to_dict() | {"decoder.arbitrary_cross": [-1, -1], "encoder.ffn_dim": [24, 24]}
    architecture = SPACE.validate(Architecture(genes))
    check_plain(TRANSLATION, architecture, model.net.config)
    with torch.no_grad(), model.using(architecture):
        expected = model(SOURCE, None, TARGET)[0]
    args = Namespace(
        **{f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in (
            ("embed_dim", 16), ("layers", 2), ("attention_heads", 4), ("learned_pos", True))},
        encoder_ffn_embed_dim=24, decoder_ffn_embed_dim=32, max_source_positions=30, max_target_positions=30,
    )  # fmt: skip
    base_architecture(args)
    own = TransformerModel.build_model(args, pair)
    with torch.no_grad():
        state = plain_weights(TRANSLATION, model.net, model.net.select(architecture))
        own.load_state_dict(state, strict=True)
        found = own.eval()(SOURCE, None, TARGET)[0]
    assert float((found - expected).abs().max() / expected.abs().max()) <= 1e-5
