"""``make bench-cuda``: run benchmarks on a GPU with the machine's own Python and torch.

Each benchmark writes ``benchmarks/results/cuda/NAME.json``. The same command resumes an interrupted benchmark.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.__main__ import modules
from benchmarks.parts.published import NASBENCH101, NASBENCH101_VALID, NASBENCH201
from tools.plain_machine import device_lines, device_problem

ROOT = Path(__file__).resolve().parents[1]
LIMIT_S = 590
"""Time limit of a benchmark, in seconds."""


@dataclass(frozen=True)
class Run:
    """Benchmark on a GPU."""

    small: tuple[str, ...] = ()
    """Options of a small run, with ``--small``."""
    modules: tuple[str, ...] = ()
    """Required modules."""
    files: tuple[Path, ...] = ()
    """Required files with published tables."""

    def missing_requirements(self) -> str | None:
        """Return what is missing; None if nothing is."""
        missing = [f"no module {name}" for name in self.modules if find_spec(name) is None]
        missing += [
            f"{file.name} is absent from the folder that NAS_EXT_DATA names" for file in self.files if not file.exists()
        ]
        return "; ".join(missing) or None


RUNS = {
    "linear_attention": Run(small=("--precision", "fp32", "--lengths", "64", "--repeats", "1")),
    "predictor_quality": Run(
        small=(
            "--benchmark",
            "nasbench101",
            "nasbench201",
            "--methods",
            "paper",
            "--draws",
            "0",
            "--sizes",
            "20",
            "--judged",
            "100",
            "--set",
            "epochs=2",
            "dim=16",
            "depth=1",
        ),
        files=(NASBENCH101, NASBENCH101_VALID, NASBENCH201),
    ),
    "supernet_update": Run(small=("--size", "tiny", "--repeats", "2")),
    "image_update": Run(small=("--small",), modules=("timm",)),
    "latency_clock": Run(small=("--architectures", "3", "--repeats", "2")),
    "predictor_speed": Run(small=("--quick", "--repeats", "1", "--parts", "largest")),
}
"""Benchmarks in the order in which they run."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run benchmarks in order; return 0 if each is done or skipped, 1 if one failed or was stopped."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_cuda", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(RUNS)}; default: all")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="time limit of a benchmark, in seconds")
    parser.add_argument("--small", action="store_true", help="tiny sizes, for tests")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "cuda", help="folder of results")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in RUNS]
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]!r}; expected one of {', '.join(RUNS)}")
    if problem := device_problem(options.device):
        print(problem, file=sys.stderr)
        return 2
    print("\n".join(device_lines(options.device)), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    outcomes = {name: _run_benchmark(name, RUNS[name], options) for name in options.names or RUNS}
    print("\n".join(f"{name}: {outcome}" for name, outcome in outcomes.items()))
    return int(any(not outcome.startswith(("done", "skipped")) for outcome in outcomes.values()))


def _run_benchmark(name: str, run: Run, options: argparse.Namespace) -> str:
    if missing := run.missing_requirements():
        return f"skipped, {missing}"
    print(f"== {name}", flush=True)
    command = [sys.executable, "-m", modules()[name], "--device", options.device]
    command += ["--out", str(options.out / f"{name}.json"), *(run.small if options.small else ())]
    start = time.perf_counter()
    try:
        exit_code = subprocess.run(command, cwd=ROOT, timeout=options.limit_s, check=False).returncode
    except subprocess.TimeoutExpired:
        return f"stopped after {options.limit_s:.0f} s; the same command resumes"
    return f"done in {time.perf_counter() - start:.0f} s" if exit_code == 0 else f"failed with exit code {exit_code}"


if __name__ == "__main__":
    raise SystemExit(main())
