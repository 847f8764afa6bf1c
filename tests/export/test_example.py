"""The decoder that users copy: it runs where neither this project nor torch can be imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.export.tiny import EOS, LIMIT, greedy, network

EXAMPLE = Path(__file__).parents[2] / "examples" / "export" / "greedy_onnx.py"
ALONE = """
import runpy, sys
for name in ("torch", "nas_core", "fairseq_ext", "timm_ext", "fairseq", "onnx", "onnxscript"):
    sys.modules[name] = None
example = sys.argv[1]
sys.argv = sys.argv[1:]
runpy.run_path(example, run_name="__main__")
"""


def test_it_translates_without_this_project(exported: Callable[[str], Path], tmp_path: Path) -> None:
    net, architecture = network("mixed")
    lines = ["s3 s4 s9", "s0", "s5 s5 s11 strange s2"]
    for options in ([], ["--beam", "3"]):
        done = subprocess.run(
            [sys.executable, "-I", "-c", ALONE, str(EXAMPLE), str(exported("mixed")), *options],
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found = done.stdout.splitlines()
        assert len(found) == len(lines)
        if not options:
            for line, text in zip(lines, found, strict=True):
                tokens = [int(word[1:]) + 4 if word[1:].isdigit() else 3 for word in line.split()] + [EOS]
                wanted = greedy(net, architecture, tokens, LIMIT)
                assert text == " ".join(f"t{token - 4}" if token > 3 else "<unk>" for token in wanted)
