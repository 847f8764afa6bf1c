"""Which opener a trained checkpoint of fairseq's is given to, and what is no such checkpoint."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nas_core.errors import CheckpointError

pytestmark = pytest.mark.fairseq


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"arch": "transformer_iwslt_de_en"}, "transformer"),
        ({"arch": "transformer"}, "transformer"),
        ({"_name": "transformer_lm_gpt"}, "transformer_lm"),
        ({"arch": "roberta_base"}, "roberta"),
        ({"arch": "fconv_iwslt_de_en"}, "fconv"),
    ],
)
def test_an_architecture_is_of_the_model_that_fairseq_registers_it_for(settings: dict[str, str], name: str) -> None:
    from fairseq_ext.elastic.trained import model_name

    assert model_name(settings) == name


def test_other_models_are_refused_in_one_line(tmp_path: Path) -> None:
    from fairseq_ext.elastic.trained import Request, open_trained

    path = tmp_path / "conv.pt"
    torch.save({"cfg": {"model": Namespace(arch="fconv_iwslt_de_en")}, "model": {}}, path)
    with pytest.raises(CheckpointError, match=r"--arch fconv_iwslt_de_en.*'fconv'.*expected one of transformer, "):
        open_trained(path, Request())


def test_supernets_are_refused(tmp_path: Path) -> None:
    from fairseq_ext.elastic.trained import Request, open_trained

    path = tmp_path / "supernet.pt"
    torch.save({"cfg": {"model": Namespace(arch="mos_transformer", search_space_json="{}")}, "model": {}}, path)
    with pytest.raises(CheckpointError, match="is a supernet or one of its subnets already"):
        open_trained(path, Request())


def test_layers_left_out_in_training_are_said_to_be_so_no_more(
    transformer: Callable[..., Path], joined: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from fairseq_ext.elastic.trained import Request, open_trained

    open_trained(transformer("--decoder-layerdrop", 0.2), Request(data=str(joined)))
    said = [record.getMessage() for record in caplog.records if "layerdrop" in record.getMessage()]
    assert said == ["--decoder-layerdrop 0.2 is not taken over: a supernet trains all layers of a subnet"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("model.pt", "around-model"),
        ("wmt/checkpoint_best.pt", "around-wmt"),
        ("a/checkpoints/checkpoint_last.pt", "around-a"),
        ("/checkpoint_last.pt", "around-checkpoint"),
    ],
)
def test_the_name_of_a_space_tells_trainings_apart(path: str, name: str) -> None:
    from fairseq_ext.elastic.spaces import name_around

    assert name_around(Path(path)) == name
