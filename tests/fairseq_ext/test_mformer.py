"""fairseq's own commands on networks with softmax and linear attention."""

from pathlib import Path

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from fairseq_ext.checkpoint import read_checkpoint
from nas_core.space import Architecture, found_translation, get_space
from tests.fairseq_ext.running import DECODING, USER_DIR, run


@pytest.fixture(scope="module")
def command(corpus):
    return [
        corpus, "--user-dir", USER_DIR, "--arch", "mformer_small", "--task", "supernet_translation",
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--optimizer", "adam",
        "--lr", 0.002, "--batch-size", 50, "--cpu", "--num-workers", 0, "--log-format", "json",
        "--no-epoch-checkpoints", "--max-update", 3, "--max-source-positions", 64, "--max-target-positions", 64,
    ]  # fmt: skip


@pytest.mark.parametrize("sampling", ["spos", "sandwich"])
def test_a_supernet_trains_and_every_kind_decodes(command, corpus, tmp_path, sampling):
    done = run("train", *command, "--sampling", sampling, "--save-dir", tmp_path, "--max-relative-length", 4)
    assert done.code == 0, done.err
    losses = [stats["train_loss"] for stats in done.stats("train")]
    assert losses and all(loss > 0 for loss in losses)
    checkpoint = tmp_path / "checkpoint_last.pt"
    state = read_checkpoint(checkpoint)["model"]
    assert {"softmax", "linear"} <= {part for name in state for part in name.split(".")}
    space = get_space("mformer_small")
    everywhere = Architecture(
        {
            **space.largest().to_dict(),
            **{f"{side}_attention": ["linear"] * 3 for side in ("encoder.self", "decoder.self", "decoder.cross")},
        }
    )
    for name, architecture in (("softmax", space.largest()), ("linear", everywhere)):
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
    from argparse import Namespace

    args = Namespace(max_source_positions=32, max_target_positions=32)
    ARCH_CONFIG_REGISTRY["mformer_found_wmt_en_de"](args)
    assert args.max_relative_length == 8
    from fairseq_ext.options import resolve_space, resolve_subnet

    assert resolve_subnet(args, resolve_space(args)) == found_translation("mformer")


def test_wrong_options_are_one_line(command, tmp_path):
    for options, message in (
        (["--linear-max-length", 32], "--linear-max-length 32"),
        (["--max-relative-length", -1], "--max-relative-length is -1"),
    ):
        done = run("train", *command, "--save-dir", tmp_path, *options)
        assert done.code != 0 and message in done.err
        assert not list(Path(tmp_path).iterdir())


def test_positions_are_part_of_the_checkpoint(command, corpus, tmp_path):
    assert run("train", *command, "--save-dir", tmp_path).code == 0
    model = read_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]["model"]
    assert (model.linear_max_length, model.linear_normalize) == (64, "denominator")
    assert torch.is_tensor(read_checkpoint(tmp_path / "checkpoint_last.pt")["model"]["net.reference_widths"])


@pytest.mark.slow
def test_the_architecture_of_the_readme(corpus, tmp_path):
    """``--arch mformer`` as a new user types it, in full size."""
    done = run(
        "train", corpus, "--user-dir", USER_DIR, "--arch", "mformer", "--task", "supernet_translation",
        "--optimizer", "adam", "--max-source-positions", 64, "--max-target-positions", 64, "--lr", 1e-4,
        "--batch-size", 4, "--cpu", "--criterion", "label_smoothed_cross_entropy", "--max-update", 1,
        "--disable-validation", "--no-save", "--num-workers", 0, "--log-format", "json", "--log-interval", 1,
        "--save-dir", tmp_path,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert done.stats("train_inner")[0]["num_updates"] == 1
