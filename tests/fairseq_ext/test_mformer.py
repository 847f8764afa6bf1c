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
from fairseq_ext.model import resolve_linear_lengths
from nas_core.errors import ConfigError
from nas_core.space import Architecture, get_space
from nas_core.space.mformer import ATTENTION_GENES, found_translation
from tests.fairseq_ext.running import DECODING, USER_DIR, assert_one_line, passed, run

LINEAR = ["linear"] * 3


def everywhere_linear() -> Architecture:
    return Architecture(
        {**get_space("mformer_translation_small").largest().to_dict(), **dict.fromkeys(ATTENTION_GENES, LINEAR)}
    )


@pytest.fixture(scope="module")
def command(corpus):
    return [
        corpus, "--user-dir", USER_DIR, "--arch", "mformer_translation_small", "--task", "supernet_translation",
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--optimizer", "adam",
        "--lr", 0.002, "--batch-size", 50, "--cpu", "--num-workers", 0, "--log-format", "json",
        "--no-epoch-checkpoints", "--max-update", 3, "--max-source-positions", 64, "--max-target-positions", 64,
    ]  # fmt: skip


def test_a_supernet_trains_and_every_kind_decodes(command, corpus, tmp_path):
    done = passed("train", *command, "--sampling", "sandwich", "--save-dir", tmp_path, "--max-relative-length", 4)
    losses = [stats["train_loss"] for stats in done.stats("train")]
    assert losses and all(loss > 0 for loss in losses)
    checkpoint = tmp_path / "checkpoint_last.pt"
    state = read_checkpoint(checkpoint)["model"]
    assert {"softmax", "linear"} <= {part for name in state for part in name.split(".")}
    for name, architecture in (
        ("softmax", get_space("mformer_translation_small").largest()),
        ("linear", everywhere_linear()),
    ):
        file = tmp_path / f"{name}.json"
        architecture.save(file)
        overrides = repr({"eval_subnet": str(file)})
        generated = [
            run("generate", corpus, "--path", checkpoint, *DECODING, "--model-overrides", overrides, "--batch-size", n)
            for n in (1, 20)
        ]
        assert [each.code for each in generated] == [0, 0], generated[0].err
        alone, together = (each.hypotheses() for each in generated)
        assert len(alone) == 20
        for row, (score, _) in alone.items():
            assert together[row][0] == pytest.approx(score, abs=2e-4)


def test_a_found_network_is_static(corpus, tmp_path):
    args = Namespace(max_source_positions=32, max_target_positions=32)
    ARCH_CONFIG_REGISTRY["mformer_found_wmt14_en_de"](args)
    assert args.max_relative_length == 8
    from fairseq_ext.supernet_model import resolve_space, resolve_subnet

    assert resolve_subnet(args, resolve_space(args)) == found_translation("mformer")


@pytest.fixture(scope="module")
def checkpoint(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mformer")
    passed("train", *command, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


def test_the_decoders_scale_is_that_of_the_data_and_part_of_the_checkpoint(checkpoint):
    """The longest sentence has nine words and its end: 10, rounded up to 16."""
    model = read_checkpoint(checkpoint)["cfg"]["model"]
    assert (model.linear_max_length, model.linear_encoder_length) == (16, None)
    assert model.linear_normalize == "denominator"
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
    found = [len(text.split()) for _, text in done.hypotheses().values()]
    assert found == [15] * 20  # and the end
    assert "as long as this model can decode, 16 tokens" in done.out + done.err


def test_wrong_lengths_are_one_line(command, tmp_path):
    for option in ("--linear-max-length", "--max-relative-length"):
        done = run("train", *command, "--save-dir", tmp_path, option, -1)
        assert_one_line(done, f"{option} is -1")
    done = run("train", *command, "--save-dir", tmp_path, "--linear-max-length", 8)
    assert done.code and "Traceback" not in done.err
    assert "since max_positions=(8, 8)" in done.err and "--skip-invalid-size-inputs-valid-test" in done.err


def test_where_only_the_encoder_is_linear_nothing_is_cut(command, corpus, checkpoint, tmp_path):
    encoder_alone = Architecture(
        {**get_space("mformer_translation_small").largest().to_dict(), "encoder.self_attention": LINEAR}
    )
    encoder_alone.save(tmp_path / "encoder.json")
    passed(
        "train", *command[:5], *command[7:], "--task", "translation", "--subnet", tmp_path / "encoder.json",
        "--save-dir", tmp_path,
    )  # fmt: skip
    assert opened(tmp_path / "checkpoint_last.pt", corpus).max_positions() == (64, 64)


def test_a_training_that_goes_on_keeps_its_scales(command, checkpoint, tmp_path):
    """Whatever the data would say now."""
    state = torch.load(checkpoint, weights_only=True)
    state["cfg"]["model"].linear_max_length = state["cfg"]["model"].linear_encoder_length = 24
    torch.save(state, tmp_path / "checkpoint_last.pt")
    passed("train", *command, "--save-dir", tmp_path, "--max-update", 4)
    model = read_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]["model"]
    assert (model.linear_max_length, model.linear_encoder_length) == (24, 24)


def test_references_and_evaluation_beyond_the_scale(command, corpus, tmp_path, caplog):
    """A reference is not read while decoding; a search leaves out what the network cannot read, and says so."""
    genes = {**get_space("mformer_translation_small").largest().to_dict(), "decoder.self_attention": LINEAR}
    Architecture(genes).save(tmp_path / "decoder.json")
    passed(
        "train", *command[:5], *command[7:], "--task", "translation", "--subnet", tmp_path / "decoder.json",
        "--save-dir", tmp_path, "--linear-max-length", 8, "--disable-validation",
    )  # fmt: skip
    trained = tmp_path / "checkpoint_last.pt"
    done = passed("generate", corpus, "--path", trained, *DECODING)
    assert len(done.hypotheses()) == 20
    supernet = HOST.open(trained, data=str(corpus))
    assert supernet.evaluate(supernet.space.largest())["loss"] > 0
    assert "are longer than this network reads, (64, 8) tokens" in caplog.text
    assert sum(batch["nsentences"] for batch in supernet.batches()) < 40


def test_a_scale_far_above_most_sentences_is_told(monkeypatch, caplog):
    args = Namespace(linear_max_length=None, max_source_positions=512, max_target_positions=512)
    task = SimpleNamespace(cfg=SimpleNamespace(source_lang="a", target_lang="b"))
    monkeypatch.setattr(lengths, "sentence_lengths", lambda *_: np.array([15] * 9 + [400]))
    resolve_linear_lengths(args, get_space("mformer_translation_small"), task)
    assert args.linear_max_length == 400 and "far above most sentences" in caplog.text


def test_without_data_the_scale_has_to_be_given():
    args = Namespace(linear_max_length=None, max_source_positions=32, max_target_positions=48, train_subset="train")
    nothing = SimpleNamespace(cfg=SimpleNamespace(data=None, source_lang="a", target_lang="b", dataset_impl=None))
    with pytest.raises(ConfigError, match="--linear-max-length M"):
        resolve_linear_lengths(args, get_space("mformer_translation_small"), nothing)
    resolve_linear_lengths(args, get_space("mformer_wmt14_en_de"), nothing)  # linear in the encoder alone
    assert args.linear_max_length == 48


@pytest.mark.parametrize("form", ["chunked", "fla"])
def test_the_form_of_linear_attention_is_kept(form, checkpoint, corpus, tmp_path):
    state = torch.load(checkpoint, weights_only=True)
    assert state["cfg"]["model"].linear_form == "auto"
    state["cfg"]["model"].linear_form = form
    torch.save(state, tmp_path / "other.pt")
    subnet = opened(tmp_path / "other.pt", corpus).net.select(everywhere_linear())
    attentions = [layer.self_attn for layer in (*subnet.encoder_layers, *subnet.decoder_layers)]
    assert {attention.kind.form for attention in attentions} == {form}
