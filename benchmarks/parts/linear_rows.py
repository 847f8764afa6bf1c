"""Linear and softmax attention in every precision of a device, by length."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.parts.record import write_result
from benchmarks.parts.resumable import measure_rows
from benchmarks.parts.timing import time_ms
from nas_core.errors import ConfigError
from nas_core.latency.machine import describe_machine
from nas_core.layers.attention.cosformer import cosformer_attention
from nas_core.layers.attention.cosformer.forms import chosen_form
from nas_core.precision import PRECISIONS, check_precision, computing_in, half_type

LENGTHS = [512, 1024, 2048, 4096, 8192, 16384, 32768]
HEADS, DIM = 8, 64
TOKENS = 32768
"""Number of positions in a batch; at least one sequence."""
PASSES = {
    # causal, with the backward pass
    "causal forward": (True, False),
    "causal forward and backward": (True, True),
    "all keys forward": (False, False),
}
MAX_DENSE_LENGTH = 1024
Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


def measure(
    device: str, precisions: Sequence[str], lengths: Sequence[int], repeats: int, threads: int, out: Path, run: str
) -> list[dict[str, Any]]:
    """Measure and store all rows; a second call resumes."""
    machine = describe_machine(device, threads)
    settings = {"device_name": machine["device_name"], "torch": machine["torch"], "repeats": repeats}
    cases = list(itertools.product(lengths, _supported_precisions(precisions, device), PASSES))
    keys = [dict(zip(("positions", "precision", "pass"), case, strict=True)) for case in cases]
    rows = measure_rows(out, keys, settings, lambda index: _row(device, *cases[index], repeats))
    write_result(out, {"machine": machine, "heads": HEADS, "head_dim": DIM, "repeats": repeats, "rows": rows}, run)
    return rows


def _supported_precisions(precisions: Sequence[str], device: str) -> list[str]:
    """Return the precisions that the device supports.

    Raises:
        ConfigError: it does not support one of ``precisions``.
    """
    if precisions:
        return [check_precision(precision, device) for precision in precisions]
    available = []
    for precision in PRECISIONS:
        try:
            available.append(check_precision(precision, device))
        except ConfigError as error:
            print(f"skipped: {error}", flush=True)
    return available


def _row(device: str, length: int, precision: str, pass_name: str, repeats: int) -> dict[str, Any]:
    causal, backward = PASSES[pass_name]
    sequences, dtype = max(1, TOKENS // length if device != "cpu" else 1), half_type(precision) or torch.float32
    generator = torch.Generator().manual_seed(0)
    split = torch.randn(sequences, length, 3, HEADS, DIM, generator=generator).to(device, dtype)
    tensors = [x.detach().requires_grad_(backward) for x in split.permute(2, 0, 3, 1, 4)]
    device_type = torch.device(device).type
    form = chosen_form(device_type, length, length, DIM, False)
    figures: dict[str, Any] = {"sequences": sequences, "form": form}
    with computing_in("tf32" if precision == "tf32" else "fp32", device):
        runs = dict(_implementations(device_type, form, causal, length))
        steps = {}
        for name, attention in runs.items():
            step = _step(attention, tensors, backward)
            try:
                figures[f"{name}_mb"] = _peak_mb(step, device)
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
                figures[f"{name}_mb"] = None
                continue
            steps[name] = step
        times_ms = _time_rounds(steps, repeats, device)
    figures |= {f"{name}_ms": round(float(np.median(ms)), 4) for name, ms in times_ms.items()}
    if "sdpa" in times_ms and "ours" in times_ms:
        figures["times_sdpa"] = round(float(np.median(np.array(times_ms["sdpa"]) / np.array(times_ms["ours"]))), 3)
    return {name: value for name, value in figures.items() if value is not None}


def _implementations(device_type: str, form: str, causal: bool, length: int) -> Iterator[tuple[str, Attention]]:
    """Yield the project's attention, torch's softmax attention, and other implementations for the device."""
    yield "ours", _project_attention("auto", causal, length)
    yield "sdpa", lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=causal)
    forms = ["chunked"] if device_type == "cuda" else []
    forms += ["dense"] if device_type == "cuda" and length <= MAX_DENSE_LENGTH else []
    for other in forms:
        if other != form:
            yield other, _project_attention(other, causal, length)


def _project_attention(form: str, causal: bool, length: int) -> Attention:
    return lambda q, k, v: cosformer_attention(q, k, v, max_length=length, causal=causal, form=form)


def _step(attention: Attention, tensors: Sequence[Tensor], backward: bool) -> Callable[[], None]:
    def step() -> None:
        if backward:
            output = attention(*tensors)
            torch.autograd.grad(output, tensors, torch.ones_like(output))
        else:
            with torch.no_grad():
                attention(*tensors)

    return step


def _peak_mb(step: Callable[[], None], device: str) -> float | None:
    """Return the memory of a second step, inputs excluded; None on the CPU."""
    step()
    if torch.device(device).type != "cuda":
        return None
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    step()
    torch.cuda.synchronize(device)
    return round((torch.cuda.max_memory_allocated(device) - before) / 2**20, 1)


def _time_rounds(runs: dict[str, Callable[[], None]], repeats: int, device: str) -> dict[str, list[float]]:
    """Return milliseconds by round, measured alternately; by CUDA events on a GPU."""
    times_ms: dict[str, list[float]] = {name: [] for name in runs}
    for round_index, (name, run) in itertools.product(range(repeats + 2), runs.items()):
        elapsed_ms = time_ms(run, torch.device(device))
        if round_index > 1:  # two rounds warm up
            times_ms[name].append(elapsed_ms)
    return times_ms
