"""Subnets as checkpoints of fairseq's own models, loaded by a process that knows nothing of this project."""

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
from nas_core.errors import ConfigError
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.elastic.conversion import convert
from nas_core.supernet.host import open_trained
from tests.fairseq_ext.distillation.teachers import as_distilled, left_of_teacher
from tests.fairseq_ext.running import DECODING, OWN, SPACE, build, fairseq_alone, passed

SOURCE = torch.tensor([[1, 1, 7, 5, 9, 2], [8, 4, 6, 10, 11, 2]])
TARGET = torch.tensor([[2, 4, 8, 6, 5], [2, 9, 7, 12, 3]])
TOKENS = torch.tensor([[2, 7, 5, 9, 8, 4], [2, 4, 6, 10, 11, 12]])
MASKED = torch.tensor([[0, 7, 5, 9, 2, 1], [0, 4, 6, 10, 11, 2]])
HEAD = {"classification_head_name": "sentence_classification_head"}
TRANSLATION_GENES = {
    "encoder.embed_dim": 12, "decoder.embed_dim": 12, "decoder.layers": 1, "encoder.ffn_dim": [18, 18],
    "encoder.self_heads": [3, 3], "decoder.ffn_dim": [16], "decoder.self_heads": [3], "decoder.cross_heads": [3],
    "decoder.arbitrary_cross": [-1],
}  # fmt: skip
LANGUAGE_GENES = {"embed_dim": 12, "ffn_dim": [18, 18], "heads": [3, 3]}
MASKED_GENES = {"embed_dim": 12, "layers": 1, "ffn_dim": [18], "heads": [3]}
CASES: list[tuple[str, str, dict[str, Any], list[Any], dict[str, str], str]] = [
    *[("translation", form, TRANSLATION_GENES, [SOURCE, None, TARGET], {}, "label_smoothed_cross_entropy")
      for form in ("post-norm", "pre-norm", "learned")],
    *[("language", form, LANGUAGE_GENES, [TOKENS], {}, "cross_entropy")
      for form in ("post-norm", "pre-norm", "learned")],
    *[("masked_lm", form, MASKED_GENES, [MASKED], {}, "masked_lm") for form in ("base", "prenorm", "untied")],
    ("classifier", "gelu", MASKED_GENES, [MASKED], HEAD, "sentence_prediction"),
]  # fmt: skip
"""Kind and form of the trained network, sizes with heads of 4 numbers, inputs, further ones, criterion."""
CRITERIA = {
    "label_smoothed_cross_entropy": "LabelSmoothedCrossEntropyCriterion",
    "cross_entropy": "CrossEntropyCriterion",
    "masked_lm": "MaskedLmLoss",
    "sentence_prediction": "SentencePredictionCriterion",
}


def narrow(space: Any, genes: dict[str, Any], **other: Any) -> Architecture:
    architecture: Architecture = space.validate(Architecture({**space.largest().to_dict(), **genes, **other}))
    return architecture


@pytest.fixture(scope="module")
def supernets(
    request: pytest.FixtureRequest, own_model: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Path]:
    """Converted networks, as if trained with a teacher that is no longer there."""
    folder, files = tmp_path_factory.mktemp("supernets"), {}
    for kind, form, *_, criterion in CASES:
        path = files[kind, form] = folder / f"{kind}-{form}.pt"
        trained = open_trained(
            own_model(kind, form), data=str(request.getfixturevalue(OWN[kind][0])), calibration_batches=1
        )
        convert(trained, path, importance_by="activation", calibration_batches=1)
        if kind != "classifier":
            as_distilled(path, f"distilled_{criterion}")
    return files


@pytest.fixture(scope="module")
def plain(
    supernets: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Path]:
    folder, files = tmp_path_factory.mktemp("plain"), {}
    for kind, form, genes, *_ in CASES:
        supernet = open_supernet(supernets[kind, form])
        files[kind, form] = folder / f"{kind}-{form}.pt"
        assert supernet.extract_plain(narrow(supernet.space, genes), files[kind, form]) > 0
    return files


def test_fairseq_alone_computes_the_same(
    request: pytest.FixtureRequest, plain: dict[Any, Path], supernets: dict[Any, Path], tmp_path: Path
) -> None:
    expected, cases = [], []
    for kind, form, genes, inputs, options, criterion in CASES:
        supernet: Any = open_supernet(supernets[kind, form])
        architecture = narrow(supernet.space, genes)
        with torch.no_grad(), supernet.model.use_architecture(architecture):
            expected.append(supernet.model(*inputs, **options)[0])
        cases.append({
            "data": str(request.getfixturevalue(OWN[kind][0])), "path": str(plain[kind, form]), "inputs": inputs,
            "options": options, "criterion": CRITERIA[criterion],
        })  # fmt: skip
        supernet.extract(architecture, tmp_path / "subnet.pt")
        for path in (plain[kind, form], tmp_path / "subnet.pt"):
            assert left_of_teacher(path) == (criterion, set())
    for case, logits, reference in zip(cases, fairseq_alone(tmp_path, cases), expected, strict=True):
        read = case["inputs"][-1].ne(1) if reference.ndim == 3 else slice(None)
        assert logits.shape == reference.shape
        assert float((logits - reference)[read].abs().max() / reference.abs().max()) <= 1e-5, case["path"]


def test_it_is_used_by_fairseq_and_converted_again(plain: dict[Any, Path], joined: Path, text: Path) -> None:
    done = passed("generate", joined, "--path", plain["translation", "learned"], *DECODING, "--beam", 1)
    assert sorted(done.hypotheses()) == list(range(20))
    for name, data, gene in (
        (("translation", "learned"), joined, "encoder.embed_dim"),
        (("language", "pre-norm"), text, "embed_dim"),
        (("masked_lm", "prenorm"), text, "embed_dim"),
    ):
        reloaded = open_trained(plain[name], data=str(data))
        assert reloaded.difference(reloaded.net) <= 1e-5 and reloaded.space.largest()[gene] == 12


def test_networks_that_fairseq_does_not_have(supernets: dict[Any, Path], tmp_path: Path) -> None:
    for name, genes, other in (
        (("translation", "learned"), TRANSLATION_GENES, {"encoder.ffn_dim": [18, 24]}),
        (("translation", "learned"), TRANSLATION_GENES, {"decoder.cross_heads": [2]}),
        (("translation", "learned"), TRANSLATION_GENES, {"encoder.self_heads": [2, 2]}),
        (("language", "learned"), LANGUAGE_GENES, {"ffn_dim": [18, 24]}),
        (("masked_lm", "base"), MASKED_GENES, {"heads": [2]}),
    ):
        supernet = open_supernet(supernets[name])
        with pytest.raises(ConfigError, match="in fairseq"):
            supernet.extract_plain(narrow(supernet.space, genes, **other), tmp_path / "a.pt")
    assert not (tmp_path / "a.pt").exists()


def test_subnets_of_other_supernets_are_plain_as_well(pair: Any) -> None:
    """In HAT's space queries have one width, and positions are the first channels of the supernet's sinusoids."""
    model = build(pair, max_source_positions=30, max_target_positions=30).eval()
    genes = SPACE.largest().to_dict() | {"decoder.arbitrary_cross": [-1, -1], "encoder.ffn_dim": [24, 24]}
    architecture = SPACE.validate(Architecture(genes))
    check_plain(TRANSLATION, architecture, model.net.config)
    with torch.no_grad(), model.use_architecture(architecture):
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
        logits = own.eval()(SOURCE, None, TARGET)[0]
    assert float((logits - expected).abs().max() / expected.abs().max()) <= 1e-5
