"""What a checkpoint holds, and a subnet taken out of one."""

import argparse
import json
from collections import OrderedDict

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_ext.checkpoint import read_checkpoint, read_state
from fairseq_ext.extraction import write_subnet
from nas_core.cli import main
from nas_core.errors import CheckpointError
from nas_core.layers.weights import named_tensors
from nas_core.models import params_m
from tests.fairseq_ext.running import DECODING, SPACE, build, run, subnet

MIXTURES = ["none", "neuron"]


def extract(checkpoint, architecture_file, out):
    return main(["extract", "--checkpoint", str(checkpoint), "--arch", str(architecture_file), "--out", str(out)])


@pytest.fixture(scope="module")
def extracted(trained, architecture_file, tmp_path_factory):
    """``extracted(mos)``: the checkpoint of the static subnet."""
    folder = tmp_path_factory.mktemp("extracted")

    def checkpoint(mos):
        path = folder / f"{mos}.pt"
        if not path.exists():
            assert extract(trained(mos), architecture_file, path) == 0
        return path

    return checkpoint


def load(path, **overrides):
    (model,), _ = checkpoint_utils.load_model_ensemble([str(path)], arg_overrides=overrides)
    return model.eval()


def kinds(value):
    """The types of everything in nested containers."""
    if isinstance(value, dict):
        return {type(value)}.union(*(kinds(item) for pair in value.items() for item in pair))
    if isinstance(value, list | tuple):
        return {type(value)}.union(*map(kinds, value))
    return kinds(vars(value)) | {type(value)} if isinstance(value, argparse.Namespace) else {type(value)}


def load_plain(path):
    """As torch reads a file by default, with one class more."""
    known = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            return torch.load(path, map_location="cpu", weights_only=True)
    finally:
        torch.serialization.add_safe_globals(known)


def test_fairseq_reads_its_checkpoints_after_timm_has_read_one(trained):
    with torch.serialization.safe_globals([argparse.Namespace]):  # forbids what it allowed when it ends
        pass
    assert argparse.Namespace not in torch.serialization.get_safe_globals()
    assert checkpoint_utils.load_checkpoint_to_cpu(str(trained("none")))["model"]


def test_checkpoints_hold_plain_data(trained, extracted):
    for path in (trained("neuron"), extracted("neuron")):
        content = load_plain(path)
        plain = {dict, OrderedDict, list, tuple, str, int, float, bool, type(None), torch.Tensor, argparse.Namespace}
        assert kinds({**content, "model": dict(content["model"])}) <= plain


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"encoder_order": None, "decoder_order": [1, 0]}, {"decoder": [1]}),  # of a supernet
        ({"encoder_order": None, "decoder_order": None, "kept_layers": {"decoder": [1]}}, {"decoder": [1]}),
        ({"encoder_order": [2, 1, 0], "kept_layers": {"decoder": [1]}}, {"encoder": [1, 2], "decoder": [1]}),
    ],
)
def test_a_subnet_remembers_which_layers_it_kept_also_when_it_is_taken_out_again(settings, kept, tmp_path):
    model = argparse.Namespace(arch="hat_transformer", **settings)
    task = {"_name": "supernet_translation", "valid_random": 2, "source_lang": "de"}
    write_subnet({"cfg": {"model": model, "task": task}}, {}, SPACE.smallest(), tmp_path / "subnet.pt")
    stored = read_state(tmp_path / "subnet.pt")["cfg"]
    assert stored["model"].kept_layers == kept and stored["model"].decoder_order is None
    assert stored["task"] == {"_name": "translation", "source_lang": "de"}


@pytest.mark.parametrize("mos", MIXTURES)
def test_the_extracted_subnet_computes_the_same(trained, extracted, batches, mos):
    supernet, static = load(trained(mos)), load(extracted(mos))
    assert static.space.cardinality() == 1 and static.architecture == subnet()
    results = []
    for model in (supernet, static):
        with model.using(subnet(), freeze=True):
            logits, _ = model(**batches[0]["net_input"])
            weights = dict(named_tensors(model.active_subnet()))
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batches[0]["target"].flatten())
            gradients = torch.autograd.grad(loss, list(weights.values()))
        results.append((logits.detach(), dict(zip(weights, gradients, strict=True))))
    assert results[0][1].keys() == results[1][1].keys()
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("options", [{"share_all_embeddings": True}, {"normalize_before": True}, {}], ids=str)
@pytest.mark.parametrize("architecture", [subnet(), SPACE.smallest()], ids=["some", "small"])
def test_static_networks_in_every_arrangement(pair, batches, options, architecture):
    class OneVocabulary:
        source_dictionary = target_dictionary = pair.target_dictionary

    task = OneVocabulary if "share_all_embeddings" in options else pair
    supernet = build(task, **options).eval()
    static = build(task, subnet_json=json.dumps(architecture.to_dict()), **options).eval()
    static.load_state_dict({f"net.{name}": value for name, value in supernet.net.static_state(architecture).items()})
    with torch.no_grad(), supernet.using(architecture):
        expected, got = supernet(**batches[0]["net_input"])[0], static(**batches[0]["net_input"])[0]
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("mos", MIXTURES)
def test_the_extracted_checkpoint_is_small(trained, extracted, mos):
    whole, part = (torch.load(path, weights_only=True) for path in (trained(mos), extracted(mos)))
    assert extracted(mos).stat().st_size < trained(mos).stat().st_size / 2
    assert not part.get("last_optimizer_state") and not any("router" in name for name in part["model"])
    network = sum(
        tensor.numel()
        for name, tensor in part["model"].items()
        if "embedding" not in name and name not in ("net.output.weight", "net.reference_widths")
    )
    assert network == round(params_m(subnet()) * 1e6)
    assert part["model"]["net.reference_widths"].tolist() == [16, 16] != [12, 16]
    assert part["cfg"]["model"].arch == "hat_transformer_small" and part["cfg"]["model"].mos == "none"
    assert whole["model"].keys() != part["model"].keys() or mos == "none"


@pytest.mark.parametrize("mos", MIXTURES)
def test_generate_says_the_same(trained, extracted, corpus, architecture_file, mos):
    common = [corpus, *DECODING, "--path"]
    overrides = repr({"eval_subnet": str(architecture_file)})
    inherited = run("generate", *common, trained(mos), "--model-overrides", overrides)
    largest = run("generate", *common, trained(mos))
    static = run("generate", *common, extracted(mos))
    assert (inherited.code, static.code) == (0, 0), inherited.err + static.err
    first, second = inherited.hypotheses(), static.hypotheses()
    assert len(first) == 20 and first != largest.hypotheses()
    assert {row: text for row, (_, text) in first.items()} == {row: text for row, (_, text) in second.items()}
    for row, (score, _) in first.items():
        assert second[row][0] == pytest.approx(score, abs=2e-4)


def test_training_goes_on_from_the_extracted_subnet(arguments, extracted, corpus, architecture_file, tmp_path):
    static = [*arguments, "--arch", "hat_transformer", "--subnet", architecture_file, "--max-update", 3]
    fresh = run("train", *static, "--save-dir", tmp_path / "fresh")
    tuned = run("train", *static, "--save-dir", tmp_path / "tuned", "--finetune-from-model", extracted("neuron"))
    assert (fresh.code, tuned.code) == (0, 0), fresh.err + tuned.err
    assert "loading pretrained model" in tuned.out and set(tuned.drawn) == {subnet()}
    assert tuned.stats("train_inner")[0]["loss"] < fresh.stats("train_inner")[0]["loss"] - 0.2
    path = tmp_path / "tuned" / "checkpoint_last.pt"
    before, after = (torch.load(file, weights_only=True)["model"] for file in (extracted("neuron"), path))
    assert before.keys() == after.keys()
    assert run("generate", corpus, "--path", path, *DECODING).code == 0
    again = run("train", *static, "--max-update", 5, "--save-dir", tmp_path / "tuned")
    assert again.code == 0 and "@ 3 updates" in again.out


def test_other_files_are_rejected_and_objects_in_them_are_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path / "trap").touch, ()

    no_model = {"model": {}, "cfg": {"model": {}}}
    for content in ({"model": {}}, no_model, {"weights": 1}, [1], {"model": {}, "cfg": {}, "x": Trap()}):
        torch.save(content, tmp_path / "c.pt")
        with pytest.raises(CheckpointError) as error:
            read_checkpoint(tmp_path / "c.pt")
        assert "c.pt" in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "trap").exists()
