"""A training whose checkpoints are large says how large, and names an architecture for a laptop."""

from argparse import Namespace

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_ext import supernet_model
from fairseq_ext.model import TranslationModel
from fairseq_ext.supernet_model import large_checkpoints
from tests.fairseq_ext.running import build


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"arch": "mos_transformer", "optimizer": "adam"}, ["1.4 GB (119 M", "last, each", "mos_transformer_small"]),
        ({"arch": "hat_transformer_wmt_en_de", "no_epoch_checkpoints": True}, ["best, last;", "hat_transformer_small"]),
        ({"arch": "mos_bert", "no_last_checkpoints": True}, ["best, each epoch;", "mos_bert_small"]),
        ({"arch": "mos_transformer_small"}, ["1.0 GB"]),
    ],
)  # fmt: skip
def test_it_says_how_large_and_what_is_smaller(options, parts):
    warning = large_checkpoints(Namespace(**options), 119_000_000)
    assert all(part in warning for part in parts), warning
    assert ("laptop" in warning) == (len(parts) > 1)


def test_small_or_unwritten_checkpoints_are_not_told():
    assert large_checkpoints(Namespace(arch="mos_transformer", optimizer="adam"), 4_000_000) is None
    assert large_checkpoints(Namespace(arch="mos_transformer", optimizer="adam", no_save=True), 119_000_000) is None


def test_a_new_supernet_is_told_and_one_of_a_checkpoint_is_not(pair, space_file, monkeypatch, caplog):
    monkeypatch.setattr(supernet_model, "_LARGE_GB", 0.0)
    build(pair)
    assert "a checkpoint takes" not in caplog.text
    args = Namespace(arch="mos_transformer", search_space=str(space_file), mos_router_hidden=8, cpu=True)
    ARCH_CONFIG_REGISTRY["mos_transformer"](args)
    TranslationModel.build_model(args, pair)
    assert "a checkpoint takes about 0.0 GB" in caplog.text
