"""What leaves the project, and what it reads, as ONNX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.page.results import Results, middle_of
from benchmarks.page.section import Section
from benchmarks.page.words import count, fixed, joined, spread, table, times

__all__ = ["SECTIONS", "decoding_times"]

SUBNETS = {"softmax": "softmax", "linear": "linear everywhere", "mixed": "linear in the decoder"}


def decoding_times(results: Results, subnet: str, batch: int) -> float:
    """How many times as long torch takes to decode as onnxruntime."""
    return middle_of(results["onnx_export"]["subnets"][subnet][f"batch {batch}"]["onnx_times"]["torch"])


def same_tokens(results: Results) -> tuple[int, int]:
    """Sentences decoded to the tokens of torch and of fairseq alike, and all sentences, over the subnets."""
    subnets: Mapping[str, Any] = results["onnx_export"]["subnets"]
    same = [min(each["same_sentences_as"].values()) for each in subnets.values()]
    return sum(same), sum(each["sentences"] for each in subnets.values())


def _decoding(results: Results) -> Mapping[str, str]:
    subnets = results["onnx_export"]["subnets"]
    same, whole = same_tokens(results)

    def quoted(subnet: str, batch: int) -> str:
        return times(decoding_times(results, subnet, batch))

    return {
        "sentences": spread([each["sentences"] for each in subnets.values()]),
        "same": "all" if same == whole else f"{count(same)} of {count(whole)}",
        **{f"{name}_{batch}": quoted(name, batch) for name in SUBNETS for batch in (1, 16)},
        "table": table(
            ["subnet", "MB", "same sentences as torch", "as fairseq", "torch / onnxruntime, batch 1", "batch 16"],
            [
                [label, fixed(subnets[name]["megabytes"]), count(subnets[name]["same_sentences_as"]["torch"]),
                 count(subnets[name]["same_sentences_as"]["fairseq"]), quoted(name, 1), quoted(name, 16)]
                for name, label in SUBNETS.items()
            ],
        ),
    }  # fmt: skip


DECODING = Section("Decoding", ("onnx_export",), _decoding)


def _reader(results: Results) -> Mapping[str, str]:
    content = results["onnx_reader"]
    rate = content["graphs_per_s"]
    return {
        "rate": fixed(rate["ours"], 0),
        "nodes": fixed(content["nodes_mean"], 0),
        "shapes": count(rate["onnx_infer_shapes"]),
        "networks": joined(str(each) for each in content["nodes"]),
        "large_nodes": count(content["many_nodes"]["nodes"]),
        "large_s": fixed(content["many_nodes"]["seconds"]),
        "megabytes": fixed(content["large_file"]["megabytes"], 0),
        "passed_ms": fixed(1000 * content["large_file"]["ours_s"]),
        "load_s": fixed(content["large_file"]["onnx_load_s"], 2),
    }


READER = Section("ONNX", ("onnx_reader",), _reader)
SECTIONS = (DECODING, READER)
