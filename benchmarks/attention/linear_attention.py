"""Linear (cosFormer) against softmax attention: time, memory and decoding.

``python -m benchmarks linear_attention [--threads 2]``. H = 8 heads, D = 64, float32. Implementations alternate in one
process. Ratios are taken within a round. Memory is the additional peak of a new process.

- ``ours``: :func:`nas_core.layers.attention.cosformer.cosformer_attention`.
- ``sdpa``: ``scaled_dot_product_attention``, torch's fused softmax attention.
- ``cumulative``: causal form by running sums over all positions, as in the authors' code.
- ``floor``: only the two matrix products of non-causal linear attention.

``--device cuda`` and ``--precision`` measure a row per length, precision and pass
(:mod:`benchmarks.parts.linear_rows`).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.parts import linear_rows
from benchmarks.parts.record import command, write_result
from benchmarks.parts.timing import compare_times
from nas_core.latency.machine import describe_machine
from nas_core.layers.attention.cosformer import cosformer_attention
from nas_core.layers.attention.cosformer.common import EPS, cos_table
from nas_core.layers.attention.cosformer.kind import CosformerState
from nas_core.precision import PRECISIONS

RESULT = Path(__file__).parents[1] / "results" / "linear_attention.json"
CUDA_RESULT = RESULT.parent / "cuda" / RESULT.name
LENGTHS = [256, 512, 1024, 2048, 4096, 8192]
HEADS, DIM = 8, 64
MAX_LENGTH = 8192
AIMS = (
    ("causal forward 1024", "sdpa", ">", 1.0),
    ("causal forward 4096", "sdpa", ">=", 5.0),
    ("causal forward 8192", "sdpa", ">=", 10.0),
    ("causal forward 2048", "cumulative", ">=", 100.0),
    ("causal forward and backward 4096", "sdpa", ">=", 3.0),
    ("all keys forward 4096", "sdpa", ">=", 8.0),
    ("all keys forward 4096", "floor", ">=", 0.5),
)


def inputs(length: int, device: str, gradients: bool = False) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shape = 1, length, 3, HEADS, DIM
    split = torch.randn(shape, generator=generator).to(device).permute(2, 0, 3, 1, 4)  # strides of projections
    return [x.detach().requires_grad_(gradients) for x in split]


def ours(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    return cosformer_attention(q, k, v, max_length=MAX_LENGTH, causal=causal)


def sdpa(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    return scaled_dot_product_attention(q, k, v, is_causal=causal)


def cumulative(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    angles = cos_table(torch.arange(q.shape[2], device=q.device), MAX_LENGTH, q.dtype)
    queries, keys = (torch.cat([x * angles.sin, x * angles.cos], -1) for x in (torch.relu(q), torch.relu(k)))
    sums = (keys[..., :, None] * v[..., None, :]).cumsum(2)
    weights = (queries * keys.cumsum(2)).sum(-1, keepdim=True)
    return torch.einsum("bhtd,bhtde->bhte", queries, sums) / weights.clamp(min=EPS)


def product_bound(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    return queries @ (keys.mT @ v)


def no_grad(function: Callable[..., Any], *arguments: Any) -> Callable[[], None]:
    def run() -> None:
        with torch.no_grad():
            function(*arguments)

    return run


def with_backward(function: Callable[..., Tensor], tensors: list[Tensor], causal: bool) -> Callable[[], None]:
    weighting = torch.randn_like(tensors[0])

    def run() -> None:
        torch.autograd.grad(function(*tensors, causal), tensors, weighting)

    return run


def max_difference(device: str) -> float:
    """Return the largest difference between implementations of the same function."""
    q, k, v = inputs(300, device)
    with torch.no_grad():
        return float((ours(q, k, v, True) - cumulative(q, k, v)).abs().max())


def measure_speed(device: str, lengths: list[int], repeats: int) -> dict[str, Any]:
    timings: dict[str, Any] = {}
    for length in lengths:
        q, k, v = inputs(length, device)
        runs = {"ours": no_grad(ours, q, k, v, True), "sdpa": no_grad(sdpa, q, k, v, True)}
        if length == 2048:
            runs["cumulative"] = no_grad(cumulative, q, k, v)
        timings[f"causal forward {length}"] = compare_times(runs, repeats, f"causal {length}")
        features = [torch.randn(1, HEADS, length, 2 * DIM, device=device) for _ in range(2)]
        runs = {"ours": no_grad(ours, q, k, v, False), "sdpa": no_grad(sdpa, q, k, v, False)}
        runs["floor"] = no_grad(product_bound, *features, v.contiguous())
        timings[f"all keys forward {length}"] = compare_times(runs, repeats, f"all keys {length}")
        if length <= 4096:
            tensors = inputs(length, device, True)
            for causal, name in ((True, "causal"), (False, "all keys")):
                passes = {f.__name__: with_backward(f, tensors, causal) for f in (ours, sdpa)}
                timings[f"{name} forward and backward {length}"] = compare_times(passes, repeats, f"{name} {length}")
    return timings


def measure_decoding(device: str, repeats: int) -> dict[str, Any]:
    """Measure a decoding step with the state of linear attention, and with a cache of keys and values."""
    runs = {}
    for length in (256, 4096):
        q, k, v = inputs(length, device)
        last = q[:, :, -1:], k[:, :, -1:], v[:, :, -1:]
        state = CosformerState.of(k, v, MAX_LENGTH)

        def step(state: CosformerState = state, last: tuple[Tensor, ...] = last, length: int = length) -> None:
            state.length = length
            state.step(*last)

        runs[f"ours {length}"] = no_grad(step)
        runs[f"sdpa {length}"] = no_grad(
            lambda q=last[0], k=k, v=v, last=last: sdpa(
                q, torch.cat([k, last[1]], 2), torch.cat([v, last[2]], 2), False
            )
        )
    return compare_times(runs, 20 * repeats, "decoding", "ours 256")


def peak_mb(name: str, length: int, backward: bool) -> float:
    """Return the peak memory of a new process, its inputs excluded."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (name, length, backward))


def _peak(name: str, length: int, backward: bool) -> float:
    function = {"ours": ours, "sdpa": sdpa}[name]
    torch.set_num_threads(1)
    warmup_tensors, tensors = inputs(256, "cpu", backward), inputs(length, "cpu", backward)
    run = with_backward if backward else lambda f, t, c: no_grad(f, *t, c)
    run(function, warmup_tensors, True)()
    step = run(function, tensors, True)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before_mb = _memory_mb("VmRSS")
    step()
    return round(_memory_mb("VmHWM") - before_mb, 1)


def _memory_mb(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(field)).split()[1]) / 1024


def measure_memory(lengths: list[int]) -> dict[str, Any]:
    return {
        f"{'forward and backward' if backward else 'forward'} {length}": {
            name: peak_mb(name, length, backward) for name in ("ours", "sdpa")
        }
        for length in lengths
        for backward in (False, True)
    }


def check_aims(result: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for part, baseline, relation, aim in AIMS:
        if part in result["speed"] and baseline in result["speed"][part]["ours_times"]:
            value = result["speed"][part]["ours_times"][baseline]["median"]
            reached = value > aim if relation == ">" else value >= aim
            rows.append({"aim": f"{part}: {relation} {aim} x {baseline}", "value": value, "reached": bool(reached)})
    step = result["decoding"]["ms"]
    ratio = step["ours 4096"]["median"] / step["ours 256"]["median"]
    rows.append({"aim": "decoding: a step at 4096 <= 1.1 x at 256", "value": round(ratio, 3), "reached": ratio <= 1.1})
    for part, peaks_mb in result.get("memory_mb", {}).items():
        ratio = peaks_mb["ours"] / peaks_mb["sdpa"]
        rows.append({"aim": f"memory, {part}: <= 2 x sdpa", "value": round(ratio, 2), "reached": ratio <= 2})
    return rows


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument("--repeats", type=int, default=7, help="number of rounds")
    parser.add_argument("--lengths", nargs="+", type=int, help="sequence lengths")
    parser.add_argument(
        "--precision", nargs="+", default=[], choices=PRECISIONS, help="default on cuda: all that the device supports"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    on_cuda = torch.device(options.device).type == "cuda"
    out = options.out or (CUDA_RESULT if on_cuda else RESULT)
    if on_cuda or options.precision:
        if out == RESULT:
            parser.error("--precision and --device cpu need --out, because the result differs from the stored one")
        linear_rows.measure(
            options.device, options.precision, options.lengths or linear_rows.LENGTHS, options.repeats,
            options.threads, out, command(__file__, argv),
        )  # fmt: skip
        return
    measure_on_cpu(options.lengths or LENGTHS, options.repeats, options.threads, out, command(__file__, argv))


def measure_on_cpu(lengths: list[int], repeats: int, threads: int, out: Path, run: str) -> None:
    result: dict[str, Any] = {"largest_difference": max_difference("cpu")}
    result["speed"] = measure_speed("cpu", lengths, repeats)
    result["decoding"] = measure_decoding("cpu", repeats)
    result["memory_mb"] = measure_memory([length for length in lengths if length >= 2048])
    result["aims"] = check_aims(result)
    result["machine"] = describe_machine("cpu", threads)
    write_result(out, result, run)
    print(json.dumps(result["aims"], indent=2))


if __name__ == "__main__":
    main()
