"""A script of a timm checkout with our models registered."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch

from tests.timm_ext.running import space_file
from tests.timm_ext.workers_started import start
from tests.warm import python
from timm_ext.checkpoint import read_checkpoint
from timm_ext.host import HOST

SCRIPT = """
import sys
import timm
import neighbour
print(timm.is_model("mformer_cifar10"), __name__, sys.argv[1:], neighbour.VALUE)
"""


def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    program, environment = python()
    command = [program, "-m", "timm_ext.launch", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_script_sees_our_models_and_its_neighbours(tmp_path: Path) -> None:
    assert launch(str(tmp_path / "train.py")).returncode == 2
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "neighbour.py").write_text("VALUE = 7\n")
    done = launch(str(tmp_path / "train.py"), "--model", "mformer_cifar10")
    assert done.stdout.strip() == "True __main__ ['--model', 'mformer_cifar10'] 7", done.stderr


AS_TIMM_DOES = """
import json, sys
import timm, torch
from timm.task import ClassificationTask
from timm.utils import init_distributed_device
from types import SimpleNamespace

space, out, updates = sys.argv[1], sys.argv[2], int(sys.argv[3])
args = SimpleNamespace(device="cpu")
device = init_distributed_device(args)
torch.manual_seed(args.rank)  # timm seeds workers differently; the wrapper shares the first one's weights
model = timm.create_model("mformer_cifar10_small_supernet", search_space=space, num_classes=2)
task = ClassificationTask(model, device=device, verbose=False)
if args.distributed:
    task.prepare_distributed(device_ids=[device], broadcast_buffers=True)
module = task.get_trainable_module().train()
generator, seen = torch.Generator().manual_seed(0), []
images, labels = torch.randn(16, 3, 32, 32, generator=generator), torch.tensor([0, 1] * 8)
(one, two), (first, second) = (all[args.rank::args.world_size].chunk(2) for all in (images, labels))
for update in range(updates):  # of two passes each, of which the first exchanges nothing
    model.zero_grad()
    with task.no_sync():
        (task(one, first)["loss"] / 2).backward()
    seen.append(model.architecture.to_dict())
    (task(two, second)["loss"] / 2).backward()
    seen.append(model.architecture.to_dict())
gradients = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
weights = {name: one.detach() for name, one in model.named_parameters()}
torch.save({"gradients": gradients, "weights": weights, "seen": json.dumps(seen)}, f"{out}.{args.rank}.pt")
"""


def test_workers_of_a_script_like_timms_share_subnets_and_gradients(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(AS_TIMM_DOES)
    arguments = [str(tmp_path / "train.py"), str(space_file(tmp_path)), str(tmp_path / "out"), "2"]
    for code, _, errors in start(2, "-m", "timm_ext.launch", *arguments):
        assert code == 0, errors
    first, second = (torch.load(tmp_path / f"out.{rank}.pt", weights_only=True) for rank in (0, 1))
    assert first["seen"] == second["seen"]
    assert set(first["gradients"]) == set(second["gradients"]) < set(first["weights"])
    for name, gradient in first["gradients"].items():
        assert torch.equal(gradient, second["gradients"][name])
        assert torch.equal(first["weights"][name], second["weights"][name])
    alone = launch(*arguments[:2], str(tmp_path / "alone"), "2")
    assert alone.returncode == 0, alone.stderr
    single = torch.load(tmp_path / "alone.0.pt", weights_only=True)
    assert single["seen"] == first["seen"]
    assert set(single["gradients"]) == set(first["gradients"])
    for name, gradient in single["gradients"].items():
        torch.testing.assert_close(first["gradients"][name], gradient, atol=1e-5, rtol=1e-4)


def test_timms_own_trainer_on_two_workers(folder: Path, tmp_path: Path) -> None:
    checkout = os.environ.get("NAS_EXT_TIMM", "")
    if not checkout:
        pytest.skip("NAS_EXT_TIMM names no checkout of timm")
    options = (
        f"--data-dir {folder} --model mformer_cifar10_small_supernet --num-classes 2 --device cpu --epochs 2"
        " --warmup-epochs 0 -b 4 --grad-accum-steps 2 --lr 0.01 --opt adamw --workers 0 --no-prefetcher"
        f" --output {tmp_path} --experiment run"
    )
    for code, _, errors in start(2, "-m", "timm_ext.launch", f"{checkout}/train.py", *options.split()):
        assert code == 0, errors
    state = read_checkpoint(tmp_path / "run" / "checkpoint-1.pth.tar")["state_dict"]
    assert int(state["updates"]) == 4
    supernet = HOST.open(tmp_path / "run" / "last.pth.tar", data=str(folder))
    assert supernet.evaluate(supernet.space.smallest())["loss"] > 0
