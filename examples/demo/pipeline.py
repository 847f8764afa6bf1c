"""The stages of the demo, in order; each is a command line."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from examples.demo import corpus as corpora
from examples.demo import results
from examples.demo.limits import MOST_MEASUREMENTS, is_poor, spread_limits
from examples.demo.pace import Pace, Trial, busy, fastest, processors
from examples.demo.page import table, write_page
from examples.demo.progress import LineCount, TrainingProgress
from examples.demo.settings import Settings
from examples.demo.stages import Runner, tool
from examples.demo.training import Plan, plan, too_little_learned, train_command, trial_command
from nas_core.errors import DataError
from nas_core.files import read_json, write_json
from nas_core.latency import load_latency_model
from nas_core.space import SearchSpace, get_space

STAGES = 8


class Pipeline:
    """One run: its settings, its folder and its stages.

    Raises:
        NasExtError: the space or the corpus of the settings is not usable; nothing is written then.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.out = settings.out
        self.space: SearchSpace = get_space(settings.space)
        self.run = Runner(self.out, settings.threads or 1, STAGES + settings.worth_a_trial)
        self.device = _device()
        self.checkpoint = self.out / "supernet" / "checkpoint_best.pt"
        self.user_dir = ""
        self.given = (
            corpora.read_folder(settings.data, settings.direction, settings.test, settings.lower)
            if settings.data
            else None
        )

    def main(self) -> None:
        """Run all stages; those that are done are skipped."""
        start = time.monotonic()
        if others := busy():
            self.run.screen.say(f"this machine is busy ({others}): everything takes longer, nothing is left out")
        nas_ext = tool("nas-ext")
        self.user_dir = self.run.command([nas_ext, "lab", "user-dir"]).strip().splitlines()[-1]
        self.corpus()
        self.preprocess()
        self.train()
        self.latency()
        self.search()
        self.extract()
        self.generate()
        self.report(max(time.monotonic() - start, sum(self.run.times.values())))

    # -- the corpus ----------------------------------------------------------------------------------------------------

    def corpus(self) -> None:
        s = self.settings
        title = f"corpus from {s.data}" if s.data else "corpus from the built-in grammar"
        names = ("data", "direction", "test", "lower", "subwords", "pairs", "words", "seed")
        inputs = [s.identity()[name] for name in names]
        self.run.stage("corpus", title, inputs, [self.out / "corpus" / "corpus.json"], self._write_corpus)
        self.about = read_json(self.out / "corpus" / "corpus.json")
        pairs = self.about["pairs"]
        pieces = f"{self.about['subwords']} subwords" if self.about["subwords"] else "words"
        self.run.screen.say(
            f"      {self.about['source']} to {self.about['target']}, {pieces}: {pairs['train']} training pairs,"
            f" {pairs['valid']} for validation, {pairs['test']} in {self.about['test_set']}"
        )

    def _write_corpus(self) -> None:
        s = self.settings
        corpus = self.given or corpora.embedded(s.pairs, seed=s.seed, words=s.words)
        corpora.write(corpus, self.out / "corpus", self.settings.subword_size)

    def preprocess(self) -> None:
        source, target = self.about["source"], self.about["target"]
        text = self.out / "corpus"
        argv = [tool("fairseq-preprocess"), "--source-lang", source, "--target-lang", target]
        for split in corpora.SPLITS:
            argv += [f"--{split}pref", text / split]
        argv += ["--destdir", self.out / "bin", "--joined-dictionary", "--workers", 2]
        outputs = [self.out / "bin" / f"dict.{source}.txt", self.out / "bin" / f"test.{source}-{target}.{target}.idx"]

        def preprocess() -> None:
            shutil.rmtree(self.out / "bin", ignore_errors=True)  # fairseq refuses a folder that holds a dictionary
            self.run.command(argv)

        self.run.stage("preprocess", "fairseq-preprocess", _words(argv[1:]), outputs, preprocess)

    # -- training ------------------------------------------------------------------------------------------------------

    def train(self) -> None:
        command = partial(train_command, self.settings, self.about, self.out, self.user_dir, self.device)
        planned = self._planned(command(1000))
        self.updates = planned.updates
        argv = command(self.updates)
        self.run.stage(
            "train",
            f"fairseq-train: supernet {self.settings.space}, experts {self.settings.mos}, {planned.told}",
            _words(argv[1:]),
            [self.checkpoint],
            lambda: self.run.command(argv, TrainingProgress(self.updates)),
        )

    def _planned(self, command: list[object]) -> Plan:
        """How many updates are made, by a trial of how fast training is here when the run is begun."""
        s, found = self.settings, self.out / "pace.json"
        if not s.worth_a_trial:
            return Plan(s.updates, f"{s.updates} updates")
        trial = trial_command(command, self.out / "logs")
        numbers = [s.threads] if s.threads else [1, 2][: processors()]

        def try_out() -> None:
            paces: dict[int, float] = {}
            self.run.screen.say(f"      tried with {' or '.join(map(str, numbers))} thread(s)")
            for threads in numbers:
                timed, self.run.threads = Trial(), threads
                self.run.command(trial, until=timed)
                if timed.seconds_per_update:
                    paces[threads] = timed.seconds_per_update
            if not paces:
                raise DataError(f"the trial of training ended before it could be timed; see {self.run.log}")
            write_json(found, asdict(fastest(paces)))

        # Not by the threads: a run that is continued with others keeps its number of updates, and so its training.
        self.run.stage("pace", "fairseq-train: how fast is it here?", _words(trial[1:]), [found], try_out)
        pace = Pace(**read_json(found))
        self.run.threads = s.threads or pace.threads
        return plan(s, pace)

    # -- latency and search --------------------------------------------------------------------------------------------

    def latency(self) -> None:
        s = self.settings
        measured, model = self.out / "latency.jsonl", self.out / "latency.json"
        self.run.stage(
            "latency-collect",
            f"nas-ext latency collect: {s.samples} architectures",
            _words(self._collect(s.samples)[1:]),
            [measured],
            lambda: self._measure(s.samples),
            fresh=[measured],
        )
        fit = [tool("nas-ext"), "latency", "fit", "--data", measured, "--out", model]

        def fit_well() -> None:
            self.run.command(fit)
            for times in range(2, MOST_MEASUREMENTS + 1):
                if not is_poor(self._quality()):
                    return
                self.run.screen.say(f"      {self._held_out()}: noise; {s.samples} more are measured")
                self._measure(times * s.samples)
                self.run.command(fit)

        self.run.stage("latency-fit", "nas-ext latency fit", _words(fit[1:]), [model], fit_well)
        poor = "; too noisy to search by: trust the measured column" if is_poor(self._quality()) else ""
        self.run.screen.say(f"      {self._held_out()}{poor}")

    def _collect(self, samples: int) -> list[object]:
        s = self.settings
        # A processor's own time has little noise where other programs run; only one thread's time can be told so.
        clock = "cpu" if self.device == "cpu" and s.latency_threads == 1 else "wall"
        return [
            tool("nas-ext"), "latency", "collect", "--space", s.space,
            "--data", self.out / "bin", "--out", self.out / "latency.jsonl", "--samples", samples,
            "--workload", f"source_length={self.about['source_length']}",
            "--workload", f"target_length={self.about['target_length']}",
            "--workload", f"beam={s.beam}", "--threads", s.latency_threads, "--clock", clock,
            "--seed", s.seed, "--device", self.device,
        ]  # fmt: skip

    def _measure(self, samples: int) -> None:
        done = LineCount(self.out / "latency.jsonl", "architectures", 1, samples)
        self.run.command(self._collect(samples), poll=done)

    def _quality(self) -> dict[str, Any]:
        return dict(load_latency_model(self.out / "latency.json", "genes", self.space).info["metrics"])

    def _held_out(self) -> str:
        quality = self._quality()
        tau = quality["kendall_tau"]
        shown = "none" if tau is None else f"{tau:.3f}"
        return f"held out: MAPE {quality['mape_percent']:.1f} %, Kendall's tau {shown}"

    def limits(self) -> list[float]:
        return spread_limits(load_latency_model(self.out / "latency.json", "genes", self.space), self.settings.limits)

    def search(self) -> None:
        s = self.settings
        limits = self.limits()
        parents, children = max(2, s.population // 4), s.population - max(2, s.population // 4)
        argv = [
            tool("nas-ext"), "search", "--checkpoint", self.checkpoint, "--latency-model", self.out / "latency.json",
            *(word for limit in limits for word in ("--limit", f"latency_ms={limit}")), "--out", self.out / "search",
            "--set", f"iterations={s.iterations}", "--set", f"population={s.population}",
            "--set", f"parents={parents}", "--set", f"mutations={children // 2}",
            "--set", f"crossovers={children - children // 2}", "--finalists", s.limits,
            "--valid-sentences", s.valid_sentences, "--seed", s.seed, "--device", self.device,
        ]  # fmt: skip
        most = len(limits) * (s.population + (s.iterations - 1) * children)
        journal = LineCount(self.out / "search" / "journal.jsonl", "architectures at most", total=most)
        self.run.stage(
            "search",
            f"nas-ext search: at most {', '.join(f'{limit:g}' for limit in limits)} ms",
            _words(argv[1:]),
            [self.out / "search" / "finalists.json"],
            lambda: self.run.command(argv, poll=journal),
            fresh=[self.out / "search"],
        )

    # -- subnets -------------------------------------------------------------------------------------------------------

    def extract(self) -> None:
        self.subnets = results.chosen(self.out / "search", self.limits(), self.space)
        folder = self.out / "subnets"
        outputs = [folder / f"{subnet.key}.pt" for subnet in self.subnets]
        keys = [subnet.key for subnet in self.subnets]
        self.run.stage("extract", f"nas-ext extract: {len(keys)} subnets", keys, outputs, self._extract, fresh=[folder])

    def _extract(self) -> None:
        for subnet in self.run.each(self.subnets):
            file = self.out / "subnets" / f"{subnet.key}.json"
            subnet.architecture.save(file)
            extract = [tool("nas-ext"), "extract", "--checkpoint", self.checkpoint, "--arch", file]
            self.run.command([*extract, "--out", file.with_suffix(".pt"), "--data", self.out / "bin"])
        losses = results.inherited_losses(self.out, self.subnets, self.settings.valid_sentences, self.device)
        write_json(self.out / "subnets" / "losses.json", losses)

    def generate(self) -> None:
        outputs = [self.out / "subnets" / f"{subnet.key}.hyp" for subnet in self.subnets]
        inputs = [self.settings.beam, self.settings.lenpen]
        title = f"fairseq-generate: {self.about['test_set']} with {len(self.subnets)} subnets"
        self.run.stage("generate", title, inputs, outputs, self._generate)

    def _generate(self) -> None:
        for subnet in self.run.each(self.subnets):
            argv = [
                tool("fairseq-generate"), self.out / "bin", "--user-dir", self.user_dir,
                "--source-lang", self.about["source"], "--target-lang", self.about["target"],
                "--path", self.out / "subnets" / f"{subnet.key}.pt", "--beam", self.settings.beam,
                "--lenpen", self.settings.lenpen, "--max-len-a", 1.5, "--max-len-b", 20, "--max-tokens", 4096,
                "--num-workers", 0,
                *(["--cpu"] if self.device == "cpu" else []),
            ]  # fmt: skip
            generated = self.run.command(argv)
            results.save_translations(generated, self.out, subnet.key, self.about)

    def report(self, seconds: float) -> None:
        content = results.gather(self.out, self.settings, self.about, self.subnets, self.space, self.run.times, seconds)
        write_json(self.out / "results.json", content)
        (self.out / "results.csv").write_text(table(content["subnets"]).csv(), encoding="utf-8")
        write_page(self.out / "report.html", self.out / "search", self.out / "latency.jsonl", content)
        say = self.run.screen.say
        say("")
        say(table(content["subnets"]).text())
        say(f"\nBLEU of inherited weights on {content['facts']['test sentences']}; parameters without embeddings.")
        if advice := too_little_learned([row["bleu"] for row in content["subnets"]], self.updates):
            say(advice)
        say(f"report: {self.out / 'report.html'}   ({content['facts']['wall time']} in all)")


def _words(argv: Sequence[object]) -> list[str]:
    return [str(word) for word in argv]


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
