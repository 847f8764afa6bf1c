"""Supernet training under torchrun, as on several machines; here two processes of one, without GPUs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[3]
WORKER = (
    'exec "$0" "$@" --distributed-world-size $WORLD_SIZE --distributed-rank $RANK --distributed-init-method env://'
    " --distributed-no-spawn --distributed-backend gloo --ddp-backend legacy_ddp"
)


@pytest.mark.slow
def test_torchrun_trains_one_supernet_with_two_workers(arguments, tmp_path):
    train = [Path(sys.executable).parent / "fairseq-train", *arguments, "--task", "supernet_translation"]
    train += ["--sampling", "sandwich", "--max-update", 2, "--save-dir", tmp_path / "two", "--disable-validation"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2]
    command += ["--no-python", "bash", "-c", WORKER, *train]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    logged = [line for line in (done.stdout + done.stderr).splitlines() if "| train_inner |" in line]
    batches = [float(json.loads(line.rpartition(" | ")[2])["bsz"]) for line in logged]
    assert batches == [32.0, 32.0]  # 16 of each worker, told by one
    state = torch.load(tmp_path / "two" / "checkpoint_last.pt", weights_only=True)
    assert state["cfg"]["distributed_training"]["distributed_world_size"] == 2
