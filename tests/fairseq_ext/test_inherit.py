"""Training that goes on from a subnet takes from its file what the command leaves open."""

from argparse import Namespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY

from nas_core.cli import main
from nas_core.space import Architecture, save_space
from nas_core.space.mformer import with_attention
from tests.fairseq_ext.running import SPACE, assert_one_line, passed, run, subnet

MIXED = with_attention(SPACE, "tiny_mixed", *[("softmax", "linear")] * 3)
TRAINED_WITH = [
    "--share-all-embeddings", "--normalize-before", "--max-relative-length", 3,
    "--max-source-positions", 64, "--max-target-positions", 48,
]  # fmt: skip


@pytest.fixture(scope="module")
def plain(arguments):
    """A training command that says nothing about the network."""
    options = list(map(str, arguments[1:]))
    for name, values in (("--arch", 1), ("--search-space", 1), ("--mos-router-hidden", 1)):
        del options[options.index(name) : options.index(name) + 1 + values]
    options.remove("--share-decoder-input-output-embed")
    return [*options, "--arch", "hat_transformer_small", "--max-update", 1]


@pytest.fixture(scope="module")
def made(joined, plain, tmp_path_factory):
    """A supernet of unusual settings, ``architecture.json``, and that subnet of it."""
    folder = tmp_path_factory.mktemp("made")
    save_space(MIXED, folder / "mixed.yml")
    genes = subnet().to_dict() | {"encoder.self_attention": ["linear", "softmax"]}
    genes |= {"decoder.self_attention": ["softmax", "linear"], "decoder.cross_attention": ["softmax", "softmax"]}
    MIXED.validate(Architecture(genes)).save(folder / "architecture.json")
    options = ["--search-space", folder / "mixed.yml", "--save-dir", folder, *TRAINED_WITH]
    passed("train", joined, *plain, *options)
    command = ["extract", "--checkpoint", folder / "checkpoint_last.pt", "--arch", folder / "architecture.json"]
    assert main([str(word) for word in [*command, "--out", folder / "subnet.pt"]]) == 0
    (folder / "mixed.yml").unlink()
    return folder


def settings(path):
    return torch.load(path, weights_only=True)["cfg"]["model"]


def test_training_goes_on_with_nothing_but_the_file(joined, plain, made, tmp_path):
    start = ["--finetune-from-model", made / "subnet.pt", "--save-dir", tmp_path]
    done = passed("train", joined, *plain, *start)
    assert "inherited from" in done.out and "--share-all-embeddings" in done.out
    assert set(done.drawn) == {Architecture.load(made / "architecture.json")}
    before, after = settings(made / "subnet.pt"), settings(tmp_path / "checkpoint_last.pt")
    for name in ("share_all_embeddings", "normalize_before", "max_relative_length", "linear_max_length",
                 "max_source_positions", "max_target_positions", "search_space_json",
                 "subnet_json"):  # fmt: skip
        assert getattr(before, name) == getattr(after, name), name
    assert not hasattr(after, "inherited_space_json")


def test_options_of_the_command_count(joined, plain, made, tmp_path):
    start = ["--finetune-from-model", made / "subnet.pt", "--save-dir", tmp_path]
    assert_one_line(run("train", joined, *plain, *start, "--max-relative-length", 2), "does not fit")


def test_nothing_is_taken_without_a_file_or_from_a_foreign_one(tmp_path):
    (tmp_path / "text.pt").write_text("no checkpoint")
    torch.save({"model": {}, "cfg": {"model": Namespace(arch="transformer")}}, tmp_path / "foreign.pt")
    for name in ("none.pt", "text.pt", "foreign.pt"):
        args = Namespace(finetune_from_model=str(tmp_path / name), save_dir=str(tmp_path / "c"))
        ARCH_CONFIG_REGISTRY["hat_transformer_small"](args)
        assert (args.search_space, args.share_all_embeddings, args.subnet) == ("hat_small", False, None)
