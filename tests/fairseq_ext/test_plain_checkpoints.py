"""Static checkpoints, a subnet's and one of fairseq's own, in ``fairseq-generate`` with and without this plug-in."""

import json
import os
import subprocess
import sys

import pytest

from nas_core.cli import main
from tests.fairseq_ext.running import DECODING, run

WITHOUT_THE_PLUG_IN = """
import contextlib, io, json, sys
sys.meta_path[:] = [finder for finder in sys.meta_path if not getattr(finder, "of_nas_ext", False)]
from fairseq_cli import generate
ends = []
for path in sys.argv[2:]:
    sys.argv = ["fairseq-generate", sys.argv[1], "--path", path, "--cpu", "--num-workers", "0"]
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            generate.cli_main()
        ends.append("no error")
    except Exception as error:
        ends.append(f"{type(error).__name__}: {error}")
print(json.dumps({"ends": ends, "plug-in": "fairseq_ext" in sys.modules}))
"""


@pytest.fixture(scope="module")
def subnet(trained, tmp_path_factory):
    path = tmp_path_factory.mktemp("subnet") / "subnet.pt"
    assert main(["extract", "--checkpoint", str(trained("none")), "--arch", "smallest", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def transformer(corpus, tmp_path_factory):
    """Of fairseq alone."""
    folder, sizes = tmp_path_factory.mktemp("transformer"), []
    for side in ("encoder", "decoder"):
        sizes += [f"--{side}-layers", 1, f"--{side}-embed-dim", 16, f"--{side}-ffn-embed-dim", 16]
        sizes += [f"--{side}-attention-heads", 2]
    done = run(
        "train", corpus, "--arch", "transformer", *sizes, "--optimizer", "adam", "--batch-size", 64, "--max-update", 1,
        "--cpu", "--num-workers", 0, "--disable-validation", "--save-dir", folder,
    )  # fmt: skip
    assert done.code == 0, done.err
    return folder / "checkpoint_last.pt"


def test_with_the_user_dir_both_translate_everything(subnet, transformer, corpus):
    for path in (subnet, transformer):
        done = run("generate", corpus, "--path", path, *DECODING, "--beam", 1)
        assert done.code == 0, done.err
        assert sorted(done.hypotheses()) == list(range(20))


def test_without_it_torch_refuses_both(subnet, transformer, corpus):
    """Without nas-ext's start-up file; where this fails, current fairseq or torch has become more permissive."""
    command = [sys.executable, "-c", WITHOUT_THE_PLUG_IN, corpus, subnet, transformer]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["plug-in"]
    assert all("Weights only load failed" in end and "argparse.Namespace" in end for end in found["ends"]), found
