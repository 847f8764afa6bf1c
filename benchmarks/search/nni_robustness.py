"""NNI experiments killed with SIGKILL at random moments and resumed, compared with an undisturbed search.

``python -m benchmarks nni_robustness``; about 15 minutes on two idle cores, since NNI takes seconds to start. Manager,
tuner and trial are killed together, ``--kills`` times per strategy: after zero to two more results and up to
``--longest`` seconds later. Trials run one at a time, so that the order of results is fixed. The journal and the Pareto
front are compared with those of the same strategy in this process.

NNI's manager listens on all interfaces without a password: run this behind a firewall.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nni
import yaml

from benchmarks.parts.nni_trial import formula
from benchmarks.parts.record import command, write_result
from nas_core.files.journal import read_jsonl
from nas_core.latency.machine import describe_machine
from nas_core.space import get_space
from nni_ext.hpo.search_space import format_space
from nni_ext.hpo.tuner import SearchTuner

RESULT = Path(__file__).parents[1] / "results" / "nni_robustness.json"
COMPARED = ("journal.jsonl", "pareto.csv")
ROOT = Path(__file__).parents[2]
STRATEGIES: Mapping[str, dict[str, Any]] = {
    "evolution": {"iterations": 3, "population": 12, "parents": 4},
    "ranknas": {"samples": 8, "rounds": 4, "per_round": 4},
}
COMMON = {"space": "hat_small", "seed": 1}


class Experiment:
    """NNI experiment with its own folder."""

    def __init__(self, folder: Path, strategy: str, trials: int) -> None:
        folder.mkdir(parents=True)
        self.folder, self.strategy, self.trials = folder, strategy, trials
        (folder / "space.json").write_text(format_space(get_space("hat_small")), encoding="utf-8")
        content = {
            "searchSpaceFile": "space.json",
            "trialCommand": f"{sys.executable} -m benchmarks.parts.nni_trial",
            "trialCodeDirectory": str(ROOT),
            "trialConcurrency": 1,
            "maxTrialNumber": 10 * trials,  # killed trials count too; the strategy ends the search
            "experimentWorkingDirectory": str(folder / "experiments"),
            "tuner": {"name": "nas-ext", "classArgs": {"strategy": strategy, **COMMON, **STRATEGIES[strategy]}},
            "trainingService": {"platform": "local"},
        }
        (folder / "experiment.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
        variables = {
            "HOME": str(folder),
            "NNI_CONFIG_DIR": str(folder),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        }
        self.environment = {**os.environ, **variables}
        self._run("-c", "from nni_ext.hpo.register import register; register()")

    def _run(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, check=False, timeout=300
        )

    @property
    def experiment_folder(self) -> Path:
        return (self.folder / "experiments" / "_latest").resolve()

    @property
    def journal(self) -> Path:
        return self.experiment_folder / "nas-ext" / "journal.jsonl"

    def count(self) -> int:
        return len(read_jsonl(self.journal)) if self.journal.exists() else 0

    def start(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        if not self.journal.exists():
            shutil.rmtree(self.folder / "experiments", ignore_errors=True)
            self._run("-m", "nni_ext.nnictl", "create", "--config", str(self.folder / "experiment.yml"), "--port", port)
        else:
            self._run("-m", "nni_ext.nnictl", "resume", self.experiment_folder.name, "--port", port)

    def kill(self) -> None:
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != os.getpid():
                try:
                    texts = [(process / name).read_bytes() for name in ("cmdline", "environ")]
                except OSError:
                    continue
                if str(self.folder).encode() in b"\n".join(texts):
                    with contextlib.suppress(ProcessLookupError):  # ended in the meantime
                        os.kill(int(process.name), signal.SIGKILL)
        time.sleep(1)

    def wait(self, seconds: float, results: int | None = None) -> bool:
        """Return True if ``results`` results, by default all, exist within a number of seconds."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.count() >= (self.trials if results is None else results):
                return True
            time.sleep(0.2)
        return False

    def finish(self) -> None:
        """Run until all results exist; restart NNI if necessary."""
        for _ in range(8):
            self.start()
            progress = -1
            while self.count() > progress:  # restart after a minute without a result
                progress = self.count()
                if self.wait(60):
                    return self.kill()
            self.kill()
        raise SystemExit(f"{self.folder} has only {self.count()} of {self.trials} results; see its log folder")


def reference_files(folder: Path, strategy: str) -> dict[str, bytes]:
    """Return the files of an uninterrupted search in this process."""
    os.environ["NNI_LOG_DIRECTORY"] = str(folder / "log")
    space = get_space("hat_small")
    search = SearchTuner(strategy=strategy, **COMMON, **STRATEGIES[strategy])
    search.update_search_space(json.loads(format_space(space)))
    for number in itertools.count():
        try:
            parameters = search.generate_parameters(number)
        except nni.NoMoreTrialError:
            break
        search.receive_trial_result(number, parameters, {"default": formula(parameters)})
        search.trial_end(number, True)
    return {name: (folder / "nas-ext" / name).read_bytes() for name in COMPARED}


def kill_at_random(experiment: Experiment, options: argparse.Namespace) -> list[int]:
    """Kill an experiment at random moments; return the number of results at each."""
    rng, counts = random.Random(options.seed), list[int]()
    for _ in range(options.kills):
        goal = min(experiment.count() + rng.randint(0, 2), experiment.trials - 1)
        experiment.start()
        experiment.wait(90, goal)
        time.sleep(rng.uniform(0, options.longest))
        experiment.kill()
        counts.append(experiment.count())
        print(f"{experiment.strategy}: killed after {counts[-1]} of {experiment.trials} results", flush=True)
    return counts


def compare(folder: Path, strategy: str, options: argparse.Namespace) -> dict[str, Any]:
    expected = reference_files(folder / f"{strategy}-undisturbed", strategy)
    trials = expected["journal.jsonl"].count(b"\n")
    experiment = Experiment(folder / f"{strategy}-killed", strategy, trials)
    try:
        counts = kill_at_random(experiment, options)
        experiment.finish()
    finally:  # also after an interruption, or NNI's manager would keep running
        experiment.kill()
    identical = {name: (experiment.journal.parent / name).read_bytes() == content for name, content in expected.items()}
    key = {"strategy": strategy, "trials": trials, "kills": options.kills}
    return {**key, "results_at_kills": counts, "identical": identical}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10, help="kills per strategy")
    parser.add_argument("--longest", type=float, default=6.0, help="longest random delay before a kill, in seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        rows = [compare(Path(folder), strategy, options) for strategy in options.strategies]
    for row in rows:
        print(row, flush=True)
    write_result(options.out, {"rows": rows, "machine": describe_machine("cpu", 1)}, command(__file__, argv))


if __name__ == "__main__":
    main()
