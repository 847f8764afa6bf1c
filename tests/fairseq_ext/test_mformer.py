"""fairseq's own commands on networks with softmax and linear attention."""

from argparse import Namespace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_ext import model as lengths
from fairseq_ext.checkpoint import read_checkpoint
from fairseq_ext.host import HOST
from fairseq_ext.model import TranslationModel, resolve_linear_lengths
from fairseq_ext.supernet_model import resolve_subnet
from nas_core.errors import ConfigError
from nas_core.space import Architecture, get_space
from nas_core.space.mformer import ATTENTION_GENES, published_translation
from tests.fairseq_ext.running import DECODING, USER_DIR, assert_one_line, passed, run

LINEAR = ["linear"] * 3


def everywhere_linear() -> Architecture:
    return Architecture(
        {**get_space("mformer_translation_small").largest().to_dict(), **dict.fromkeys(ATTENTION_GENES, LINEAR)}
    )


@pytest.fixture(scope="module")
def command(corpus):
    return [
        corpus, "--user-dir", USER_DIR, "--arch", "mformer_translation_small",
        "--task", "supernet_translation", "--valid-random", 0,
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--optimizer", "adam",
        "--lr", 0.002, "--batch-size", 50, "--cpu", "--num-workers", 0, "--log-format", "json",
        "--no-epoch-checkpoints", "--max-update", 2, "--max-source-positions", 64, "--max-target-positions", 64,
    ]  # fmt: skip


def test_a_supernet_trains_and_linear_attention_decodes(command, corpus, tmp_path):
    passed("train", *command, "--sampling", "sandwich", "--save-dir", tmp_path, "--max-relative-length", 4)
    checkpoint = tmp_path / "checkpoint_last.pt"
    state = read_checkpoint(checkpoint)["model"]
    assert {"softmax", "linear"} <= {part for name in state for part in name.split(".")}
    everywhere_linear().save(tmp_path / "linear.json")
    decoding = [*DECODING, "--model-overrides", repr({"eval_subnet": str(tmp_path / "linear.json")})]
    alone, together = (
        passed("generate", corpus, "--path", checkpoint, *decoding, "--batch-size", size).hypotheses()
        for size in (1, 20)
    )
    assert len(alone) == 20
    for row, (score, _) in alone.items():
        assert together[row][0] == pytest.approx(score, abs=2e-4)


def test_a_found_network_is_static():
    args = Namespace(max_source_positions=32, max_target_positions=32)
    ARCH_CONFIG_REGISTRY["mformer_found_wmt14_en_de"](args)
    assert args.max_relative_length == 8
    assert resolve_subnet(args, TranslationModel.resolve_space(args)) == published_translation("mformer")


@pytest.fixture(scope="module")
def checkpoint(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mformer")
    passed("train", *command, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


def test_the_decoders_scale_is_that_of_the_data_and_part_of_the_checkpoint(checkpoint):
    """The longest sentence has nine words and its end: 10, rounded up to 16."""
    model = read_checkpoint(checkpoint)["cfg"]["model"]
    assert (model.linear_max_length, model.linear_encoder_length) == (16, None)
    assert torch.is_tensor(read_checkpoint(checkpoint)["model"]["net.reference_widths"])


def opened(checkpoint, corpus):
    return HOST.open(checkpoint, data=str(corpus)).model


def test_what_is_read_and_decoded_ends_where_linear_attention_does(checkpoint, corpus, tmp_path):
    model = opened(checkpoint, corpus)
    assert model.max_positions() == (16, 16)
    linear = [layer.self_attn.kind for layer in model.net.select(everywhere_linear()).encoder_layers]
    assert {each.max_length for each in linear} == {None}
    file = tmp_path / "linear.json"
    everywhere_linear().save(file)
    overrides = repr({"eval_subnet": str(file)})
    done = passed(
        "generate", corpus, "--path", checkpoint, *DECODING, "--model-overrides", overrides, "--max-len-b", 200,
        "--min-len", 15,
    )  # fmt: skip
    results = [len(text.split()) for _, text in done.hypotheses().values()]
    assert results == [15] * 20  # and the end
    assert "cut off at 16 tokens" in done.out + done.err


def test_wrong_lengths_are_one_line(command, tmp_path):
    done = run("train", *command, "--save-dir", tmp_path, "--linear-max-length", -1)
    assert_one_line(done, "--linear-max-length is -1")


def test_a_training_that_goes_on_keeps_its_scales(command, checkpoint, tmp_path):
    """Whatever the data would say now."""
    state = torch.load(checkpoint, weights_only=True)
    state["cfg"]["model"].linear_max_length = state["cfg"]["model"].linear_encoder_length = 24
    torch.save(state, tmp_path / "checkpoint_last.pt")
    passed("train", *command, "--save-dir", tmp_path, "--max-update", 3)
    model = read_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]["model"]
    assert (model.linear_max_length, model.linear_encoder_length) == (24, 24)


def test_references_and_evaluation_beyond_the_scale(command, corpus, tmp_path):
    """A reference is not read while decoding; an evaluation skips what the network cannot read."""
    genes = {**get_space("mformer_translation_small").largest().to_dict(), "decoder.self_attention": LINEAR}
    Architecture(genes).save(tmp_path / "decoder.json")
    passed(
        "train", *command[:5], *command[9:], "--task", "translation", "--subnet", tmp_path / "decoder.json",
        "--save-dir", tmp_path, "--linear-max-length", 8, "--disable-validation",
    )  # fmt: skip
    trained = tmp_path / "checkpoint_last.pt"
    assert len(passed("generate", corpus, "--path", trained, *DECODING).hypotheses()) == 20
    supernet = HOST.open(trained, data=str(corpus))
    assert supernet.evaluate(supernet.space.largest())["loss"] > 0
    assert sum(batch["nsentences"] for batch in supernet.batches()) < 40


def test_a_scale_far_above_most_sentences_is_reported(monkeypatch, caplog):
    args = Namespace(linear_max_length=None, max_source_positions=512, max_target_positions=512)
    task = SimpleNamespace(cfg=SimpleNamespace(source_lang="a", target_lang="b"))
    monkeypatch.setattr(lengths, "sentence_lengths", lambda *_: np.array([15] * 9 + [400]))
    resolve_linear_lengths(args, get_space("mformer_translation_small"), task)
    assert args.linear_max_length == 400 and "far above most sentences" in caplog.text


def test_without_data_the_scale_has_to_be_given(monkeypatch):
    args = Namespace(linear_max_length=None, max_source_positions=32, max_target_positions=48, train_subset="train")
    monkeypatch.setattr(lengths, "sentence_lengths", lambda *_: np.array([]))
    with pytest.raises(ConfigError):
        resolve_linear_lengths(args, get_space("mformer_translation_small"), None)
    args.linear_max_length = None
    resolve_linear_lengths(args, get_space("mformer_wmt14_en_de"), None)  # linear in the encoder alone
    assert args.linear_max_length == 48
