"""Evaluation of a fairseq supernet on any device, in every precision that it has."""

from functools import cache

import pytest
import torch

pytest.importorskip("fairseq")

from fairseq_ext.host import HOST
from nas_core.errors import ConfigError
from tests.devices import PRECISIONS
from tests.fairseq_ext.running import SPACE, passed, subnet
from tests.host_reads import host_reads

ALLOWED = {"fp32": 1e-4, "tf32": 2e-3, "bf16": 2e-2, "fp16": 4e-3}
"""Of a loss, relative."""


@pytest.fixture(scope="module")
def checkpoint(arguments, tmp_path_factory):
    """``checkpoint(mos)``: a supernet after two updates on the CPU."""

    @cache
    def path(mos):
        folder = tmp_path_factory.mktemp(mos)
        options = ["--mos", mos, "--max-update", 2, "--disable-validation", "--save-dir", folder]
        passed("train", *arguments, *options)
        return folder / "checkpoint_last.pt"

    return path


def tensors(value):
    """Every tensor in a batch."""
    if torch.is_tensor(value):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [tensor for each in inner for tensor in tensors(each)]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_losses_in_each_precision(checkpoint, device, precision):
    mos = "neuron"
    if precision == "tf32" and device == "cpu":
        with pytest.raises(ConfigError, match="precision tf32 needs an NVIDIA GPU"):
            HOST.open(checkpoint(mos), device=device, precision=precision)
        return
    supernet = HOST.open(checkpoint(mos), device=device, precision=precision)
    exact = HOST.open(checkpoint(mos))
    assert (supernet.precision, exact.precision) == (precision, "fp32")
    for architecture in (SPACE.smallest(), subnet(), SPACE.largest()):
        expected = exact.evaluate(architecture)
        assert supernet.evaluate(architecture) == pytest.approx(expected, rel=ALLOWED[precision])
    if precision in ("bf16", "fp16") and device == "cpu":
        assert supernet.evaluate(subnet()) != exact.evaluate(subnet())


def test_what_is_extracted_is_float32_on_the_cpu(checkpoint, device, tmp_path):
    files = []
    for name, options in (("half", {"device": device, "precision": "bf16"}), ("cpu", {})):
        supernet = HOST.open(checkpoint("neuron"), **options)
        supernet.evaluate(subnet())
        supernet.extract(subnet(), tmp_path / f"{name}.pt")
        files.append(torch.load(tmp_path / f"{name}.pt", weights_only=True)["model"])
    half, exact = files
    assert {(tensor.dtype, tensor.device.type) for tensor in half.values() if tensor.is_floating_point()} == {
        (torch.float32, "cpu")
    }
    torch.testing.assert_close(half, exact, rtol=1e-5, atol=1e-6)


def test_everything_lies_on_the_device_that_was_asked_for(checkpoint, second_device):
    supernet = HOST.open(checkpoint("neuron"), device=second_device)
    batches = supernet.batches()
    assert {tensor.device for batch in batches for tensor in tensors(batch)} == {torch.device(second_device)}
    assert {tensor.device for tensor in supernet.model.state_dict().values()} == {torch.device(second_device)}
    assert supernet.evaluate(subnet()) == pytest.approx(HOST.open(checkpoint("neuron")).evaluate(subnet()), rel=1e-4)


def test_evaluation_waits_for_the_device_once(checkpoint, device):
    supernet = HOST.open(checkpoint("neuron"), device=device)
    reads = []
    for _ in range(2):
        supernet.batches().extend(supernet.batches())
        supernet.evaluate(subnet())
        with host_reads(device) as result:
            supernet.evaluate(subnet())
        reads.append(len(result))
    assert reads[0] == reads[1] <= 2, reads
