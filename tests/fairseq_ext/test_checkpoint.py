"""What a checkpoint holds, and a subnet taken out of one."""

import argparse
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
from tests.fairseq_ext.running import DECODING, SPACE, passed, subnet


def extract(checkpoint, architecture_file, out):
    return main(["extract", "--checkpoint", str(checkpoint), "--arch", str(architecture_file), "--out", str(out)])


@pytest.fixture(scope="module")
def extracted(trained, architecture_file, tmp_path_factory):
    """The checkpoint of the static subnet."""
    path = tmp_path_factory.mktemp("extracted") / "subnet.pt"
    assert extract(trained("neuron"), architecture_file, path) == 0
    return path


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
    safe_globals = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            return torch.load(path, map_location="cpu", weights_only=True)
    finally:
        torch.serialization.add_safe_globals(safe_globals)


def test_checkpoints_hold_plain_data(trained, extracted):
    for path in (trained("neuron"), extracted):
        content = load_plain(path)
        plain = {dict, OrderedDict, list, tuple, str, int, float, bool, type(None), torch.Tensor, argparse.Namespace}
        assert kinds({**content, "model": dict(content["model"])}) <= plain


def test_a_subnet_has_no_order_of_layers_and_no_options_of_supernets(tmp_path):
    model = argparse.Namespace(arch="hat_transformer", encoder_order=None, decoder_order=[1, 0])
    task = {"_name": "supernet_translation", "valid_random": 2, "source_lang": "de"}
    write_subnet({"cfg": {"model": model, "task": task}}, {}, SPACE.smallest(), tmp_path / "subnet.pt")
    stored = read_state(tmp_path / "subnet.pt")["cfg"]
    assert stored["model"].decoder_order is None
    assert stored["task"] == {"_name": "translation", "source_lang": "de"}


def test_the_extracted_subnet_computes_the_same(trained, extracted, batches):
    supernet, static = load(trained("neuron")), load(extracted)
    assert static.space.cardinality() == 1 and static.architecture == subnet()
    results = []
    for model in (supernet, static):
        with model.use_architecture(subnet(), freeze=True):
            logits, _ = model(**batches[0]["net_input"])
            weights = dict(named_tensors(model.active_subnet()))
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batches[0]["target"].flatten())
            gradients = torch.autograd.grad(loss, list(weights.values()))
        results.append((logits.detach(), dict(zip(weights, gradients, strict=True))))
    assert results[0][1].keys() == results[1][1].keys()
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=1e-5)


def test_the_extracted_checkpoint_is_small(trained, extracted):
    part = torch.load(extracted, weights_only=True)
    assert extracted.stat().st_size < trained("neuron").stat().st_size / 2
    assert not part.get("last_optimizer_state") and not any("router" in name for name in part["model"])
    network = sum(
        tensor.numel()
        for name, tensor in part["model"].items()
        if "embedding" not in name and name not in ("net.output.weight", "net.reference_widths")
    )
    assert network == round(params_m(subnet()) * 1e6)
    assert part["cfg"]["model"].arch == "hat_transformer_small" and part["cfg"]["model"].mos == "none"


def test_generate_says_the_same(trained, extracted, corpus, architecture_file):
    common = [corpus, *DECODING, "--path"]
    overrides = repr({"eval_subnet": str(architecture_file)})
    first = passed("generate", *common, trained("neuron"), "--model-overrides", overrides).hypotheses()
    second = passed("generate", *common, extracted).hypotheses()
    assert len(first) == 20
    for row, (score, text) in first.items():
        assert second[row] == (pytest.approx(score, abs=2e-4), text)


def test_training_goes_on_from_the_extracted_subnet(arguments, extracted, architecture_file, tmp_path):
    static = [*arguments, "--arch", "hat_transformer", "--subnet", architecture_file, "--max-update", 2]
    static += ["--disable-validation"]
    fresh = passed("train", *static, "--save-dir", tmp_path / "fresh")
    tuned = passed("train", *static, "--save-dir", tmp_path / "tuned", "--finetune-from-model", extracted)
    assert set(tuned.drawn) == {subnet()}
    assert tuned.stats("train_inner")[0]["loss"] < fresh.stats("train_inner")[0]["loss"] - 0.2
    before = torch.load(extracted, weights_only=True)["model"]
    assert torch.load(tmp_path / "tuned" / "checkpoint_last.pt", weights_only=True)["model"].keys() == before.keys()
    repeated = passed("train", *static, "--max-update", 3, "--save-dir", tmp_path / "tuned")
    assert "@ 2 updates" in repeated.out


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
