"""The stages of the demo, in order; each is a command line."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from functools import partial

from examples.translation import corpus as corpora
from examples.translation import results
from examples.translation.page import table, write_page
from examples.translation.progress import LineCount, TrainingProgress
from examples.translation.settings import Settings
from examples.translation.stages import Runner, tool
from examples.translation.training import (
    PACE_SECONDS,
    late_stop,
    train_command,
    trial_command,
    updates_within,
)
from nas_core.files import read_json, write_json
from nas_core.latency import load_model
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
        self.run = Runner(self.out, settings.threads, STAGES + (settings.budget[0] > 0))
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
        nas_ext = tool("nas-ext")
        self.user_dir = self.run.command([nas_ext, "user-dir"]).strip().splitlines()[-1]
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
        inputs = [s.identity()[name] for name in ("data", "direction", "test", "lower", "subwords", "pairs", "seed")]
        self.run.stage("corpus", title, inputs, [self.out / "corpus" / "corpus.json"], self._write_corpus)
        self.about = read_json(self.out / "corpus" / "corpus.json")
        pairs = self.about["pairs"]
        pieces = f"{self.about['subwords']} subwords" if self.about["subwords"] else "words"
        self.run.screen.say(
            f"      {self.about['source']} to {self.about['target']}, {pieces}: {pairs['train']} training pairs,"
            f" {pairs['valid']} for validation, {pairs['test']} in {self.about['test_set']}"
        )

    def _write_corpus(self) -> None:
        corpus = self.given or corpora.embedded(self.settings.pairs, seed=self.settings.seed)
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
        minutes, updates = self.settings.budget
        command = partial(train_command, self.settings, self.about, self.out, self.user_dir, self.device)
        if minutes:
            trial, pace = trial_command(command(1000), self.out / "logs"), self.out / "pace.json"
            self.run.stage(
                "pace",
                f"fairseq-train: {PACE_SECONDS} seconds of trial",
                [_words(trial[1:]), minutes],
                [pace],
                lambda: write_json(pace, {"updates": updates_within(minutes, self.run.command(trial))}),
            )
            updates = read_json(pace)["updates"]
            self.run.screen.say(f"      {updates} updates fit into {minutes:g} minutes")
        argv = [*command(updates), *late_stop(minutes)]
        self.run.stage(
            "train",
            f"fairseq-train: supernet {self.settings.space}, experts {self.settings.mos}, {updates} updates",
            _words(argv[1:]),
            [self.checkpoint],
            lambda: self.run.command(argv, TrainingProgress(minutes, updates)),
        )

    # -- latency and search --------------------------------------------------------------------------------------------

    def latency(self) -> None:
        s = self.settings
        measured, model = self.out / "latency.jsonl", self.out / "latency.json"
        argv = [
            tool("nas-ext"), "latency", "collect", "--space", s.space, "--data", self.out / "bin", "--out", measured,
            "--samples", s.samples, "--source-length", self.about["source_length"],
            "--target-length", self.about["target_length"], "--beam", s.beam, "--threads", s.latency_threads,
            "--seed", s.seed, "--device", self.device,
        ]  # fmt: skip
        self.run.stage(
            "latency-collect",
            f"nas-ext latency collect: {s.samples} architectures",
            _words(argv[1:]),
            [measured],
            lambda: self.run.command(argv, poll=LineCount(measured, "architectures", 1, s.samples)),
            fresh=[measured],
        )
        fit = [tool("nas-ext"), "latency", "fit", "--data", measured, "--out", model]
        self.run.stage("latency-fit", "nas-ext latency fit", _words(fit[1:]), [model], lambda: self.run.command(fit))
        quality = load_model(model, self.space).info["metrics"]
        self.run.screen.say(f"      held out: MAPE {quality['mape_percent']:.1f} %, tau {quality['kendall_tau']:.3f}")

    def limits(self) -> list[float]:
        """Limits between the predicted latencies of the smallest and of the largest architecture, evenly spread."""
        model = load_model(self.out / "latency.json", self.space)
        low, high = model.predict([self.space.smallest(), self.space.largest()])
        count = self.settings.limits
        return [float(f"{low + (high - low) * (i + 1) / (count + 1):.3g}") for i in range(count)]

    def search(self) -> None:
        s = self.settings
        limits = self.limits()
        parents, children = max(2, s.population // 4), s.population - max(2, s.population // 4)
        argv = [
            tool("nas-ext"), "search", "--checkpoint", self.checkpoint, "--latency-model", self.out / "latency.json",
            *(word for limit in limits for word in ("--limit-ms", limit)), "--out", self.out / "search",
            "--iterations", s.iterations, "--population", s.population, "--parents", parents,
            "--mutations", children // 2, "--crossovers", children - children // 2, "--finalists", s.limits,
            "--valid-sentences", s.valid_sentences, "--seed", s.seed, "--device", self.device,
        ]  # fmt: skip
        journal = LineCount(self.out / "search" / "journal.jsonl", "architectures evaluated")
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
        for index, subnet in enumerate(self.subnets):
            self.run.screen.status(f"      {subnet.name} ({index + 1} of {len(self.subnets)})")
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
        for index, subnet in enumerate(self.subnets):
            self.run.screen.status(f"      {subnet.name} ({index + 1} of {len(self.subnets)})")
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
        say(f"report: {self.out / 'report.html'}   ({content['facts']['wall time']} in all)")


def _words(argv: Sequence[object]) -> list[str]:
    return [str(word) for word in argv]


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
