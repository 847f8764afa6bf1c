"""The warning about large checkpoints of a training."""

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
        ({"arch": "mos_transformer_small"}, ["1.0 GB"]),
        ({"arch": "mos_transformer", "no_save": True}, []),
    ],
)
def test_it_names_sizes_files_and_a_smaller_architecture(options, parts):
    warning = large_checkpoints(Namespace(**options), 119_000_000)
    assert (warning is not None) == bool(parts) and all(part in warning for part in parts)


def test_only_a_new_supernet_is_warned_about(pair, space_file, monkeypatch, caplog):
    monkeypatch.setattr(supernet_model, "_LARGE_GB", 0.0)
    build(pair)
    assert "a checkpoint takes" not in caplog.text
    args = Namespace(arch="mos_transformer", search_space=str(space_file), mos_router_hidden=8, cpu=True)
    ARCH_CONFIG_REGISTRY["mos_transformer"](args)
    TranslationModel.build_model(args, pair)
    assert "a checkpoint takes about 0.0 GB" in caplog.text
