"""Speed of exported translation networks in onnxruntime, relative to torch, with equal output tokens.

Run: ``python -m benchmarks onnx_export softmax=subnet.pt linear=other.pt --data BIN``. Each ``NAME=CHECKPOINT``,
written by ``nas-ext extract``, translates the test set greedily by

- ``onnx``: ``examples/export/greedy_onnx.py``, with only onnxruntime and NumPy.
- ``torch``: the network's own incremental decoding, without fairseq.
- ``fairseq``: fairseq's generator with beam 1, to compare tokens.

Times of the first two are measured alternately on the same sentences, with one thread. They include the encoder and all
decoding steps.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from benchmarks.parts.record import command, write_result
from benchmarks.parts.timing import compare_times
from examples.export.greedy_onnx import Translator
from nas_core.export import write_export
from nas_core.latency.machine import describe_machine
from nas_core.models.translation.net import TranslationNet
from nas_core.space import Architecture
from nas_core.supernet.host import open_exportable

RESULT = Path(__file__).parents[1] / "results" / "onnx_export.json"
MAX_LENGTH = 200
AIM = 1.0
"""Aim: torch takes at least this many times as long as onnxruntime."""
Tokens = list[list[int]]


@torch.inference_mode()
def torch_greedy(net: TranslationNet, architecture: Architecture, sentences: Tokens, pad: int, eos: int) -> Tokens:
    """Translate greedily in torch, like ``Translator.greedy`` of the example in onnxruntime."""
    subnet = net.select(architecture)
    source = torch.full((len(sentences), max(map(len, sentences))), pad)
    for row, sentence in zip(source, sentences, strict=True):
        row[: len(sentence)] = torch.tensor(sentence)
    cache = net.start(subnet, net.encode(subnet, source))
    tokens, active = torch.full((len(sentences),), eos), list(range(len(sentences)))
    translations: Tokens = [[] for _ in sentences]
    for position in range(MAX_LENGTH):
        scores: Tensor = net.step(subnet, tokens, cache)
        scores[:, pad] = -torch.inf
        if not position:
            scores[:, eos] = -torch.inf
        tokens = scores.argmax(1)
        for number, token in zip(active, tokens.tolist(), strict=True):
            if token != eos:
                translations[number].append(token)
        remaining = (tokens != eos).nonzero()[:, 0]
        if not len(remaining):
            break
        if len(remaining) < len(tokens):
            active = [active[row] for row in remaining.tolist()]
            cache.reorder(remaining)
            tokens = tokens[remaining]
    return translations


def fairseq_greedy(task: Any, model: Any, sentences: Tokens, batch: int) -> Tokens:
    options = argparse.Namespace(beam=1, max_len_a=0, max_len_b=MAX_LENGTH)
    generator, pad = task.build_generator([model], options), task.source_dictionary.pad()
    translations: Tokens = []
    for batch_sentences in batches_of(sentences, batch):
        max_length = max(map(len, batch_sentences))
        tokens = torch.tensor([[pad] * (max_length - len(sentence)) + sentence for sentence in batch_sentences])
        sample = {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor([len(x) for x in batch_sentences])}}
        with torch.no_grad():
            translations += [
                hypotheses[0]["tokens"].tolist()[:-1] for hypotheses in generator.generate([model], sample)
            ]
    return translations


def batches_of(sentences: Tokens, batch: int) -> list[Tokens]:
    return [sentences[start : start + batch] for start in range(0, len(sentences), batch)]


def load_test_sentences(task: Any, count: int) -> Tokens:
    task.load_dataset("test")
    source = task.dataset("test").src
    rows = np.unique(np.linspace(0, len(source) - 1, count).round().astype(int))
    return [source[int(row)].tolist() for row in rows]


def measure(checkpoint: Path, data: str, folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    opened: Any = open_exportable(checkpoint, data=data)
    architecture = opened.space.largest()
    model = opened.exportable(architecture)
    export = write_export(model, folder)
    translator = Translator(folder)
    net: Any = model.parts[0].module.net
    pad, eos = translator.pad, translator.eos
    sentences = load_test_sentences(opened.fairseq_task, arguments.sentences)

    def by_onnx(batch: int, batch_sentences: Tokens) -> Tokens:
        return [tokens for part in batches_of(batch_sentences, batch) for tokens in translator.greedy(part, MAX_LENGTH)]

    def by_torch(batch: int, batch_sentences: Tokens) -> Tokens:
        return [
            tokens
            for part in batches_of(batch_sentences, batch)
            for tokens in torch_greedy(net, architecture, part, pad, eos)
        ]

    onnx_translations = by_onnx(32, sentences)
    translations = {
        "torch": by_torch(32, sentences),
        "fairseq": fairseq_greedy(opened.fairseq_task, opened.model, sentences, 32),
        "onnx_one_by_one": by_onnx(1, sentences),
    }
    timed = sentences[:: max(1, len(sentences) // arguments.timed)][: arguments.timed]
    speed = {}
    for batch in arguments.batches:
        runs = {"onnx": lambda b=batch: by_onnx(b, timed), "torch": lambda b=batch: by_torch(b, timed)}
        speed[f"batch {batch}"] = compare_times(runs, arguments.repeats, f"{checkpoint.stem} batch {batch}", "onnx")
    return {
        "checkpoint": checkpoint.name,
        "architecture": architecture.to_dict(),
        "megabytes": round(export.megabytes, 2),
        "difference_to_torch": export.differences,
        "sentences": len(sentences),
        "tokens": sum(map(len, onnx_translations)),
        "same_sentences_as": {
            name: sum(a == b for a, b in zip(onnx_translations, tokens, strict=True))
            for name, tokens in translations.items()
        },
        "timed": {"sentences": len(timed), "tokens": sum(map(len, by_onnx(1, timed)))},
        **speed,
        "aim_torch_over_onnx": AIM,
        "reached": all(times["onnx_times"]["torch"]["median"] >= AIM for times in speed.values()),
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("subnets", nargs="+", metavar="NAME=CHECKPOINT", help="extracted subnets")
    parser.add_argument("--data", required=True, help="folder of fairseq-preprocess")
    parser.add_argument("--sentences", type=int, default=1000, help="test sentences whose tokens are compared")
    parser.add_argument("--timed", type=int, default=40, help="number of these that are translated in each round")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--repeats", type=int, default=7, help="number of rounds")
    parser.add_argument("--out", type=Path, default=RESULT, help="file of the result")
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for subnet in arguments.subnets:
            name, _, checkpoint = subnet.rpartition("=")
            results[name or Path(checkpoint).stem] = measure(
                Path(checkpoint), arguments.data, Path(folder) / (name or "subnet"), arguments
            )
    versions = {"onnxruntime": onnxruntime.__version__}
    content = {"subnets": results, "machine": {**describe_machine("cpu", 1), **versions}}
    write_result(arguments.out, content, command(__file__, argv))
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
