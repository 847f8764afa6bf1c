"""How much cosFormer's cosine changes the output, by the length of a sentence and the scale M of the positions.

``python -m benchmarks attention_scale``: the relative difference (Frobenius norm) between linear attention with the
cosine and without it, on random queries, keys and values; "own" is each sentence's own length, as in the encoder, a
number is one scale for all, as in the decoder (there attention is causal).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from benchmarks.brief.declared import Brief, Figure
from benchmarks.parts.record import command, write_result
from nas_core.latency.machine import describe_machine
from nas_core.layers.attention.cosformer import cosformer_attention

RESULT = Path(__file__).parents[1] / "results" / "attention_scale.json"
LENGTHS = (5, 10, 15, 30, 60)
SCALES = (48, 64, 128, 256, 512, 1024)
SHAPE = (16, 4)
"""Sentences and heads."""
DIM = 32
NONE = 10**9
"""At this scale the cosine is 1 to the last digit."""
BRIEF = Brief(
    "",
    (Figure("change of the output by the cosine, 30 tokens, scale 64", ("rows", {"length": 30}, "causal", "64"), ""),),
)


def change(length: int, scale: int | None, causal: bool) -> float:
    """Relative difference of the outputs for sentences of ``length`` tokens."""
    stream = torch.Generator().manual_seed(length)
    q, k, v = (torch.randn(*SHAPE, length, DIM, dtype=torch.double, generator=stream) for _ in range(3))
    plain = cosformer_attention(q, k, v, max_length=NONE, causal=causal)
    weighed = cosformer_attention(q, k, v, max_length=scale, causal=causal)
    return float((weighed - plain).norm() / plain.norm())


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args(argv)
    rows = []
    for length in LENGTHS:
        scales = [scale for scale in SCALES if scale >= length]
        row = {
            "length": length,
            "own": round(change(length, None, False), 5),
            "all_keys": {str(scale): round(change(length, scale, False), 5) for scale in scales},
            "causal": {str(scale): round(change(length, scale, True), 5) for scale in scales},
        }
        print(row)
        rows.append(row)
    machine = describe_machine("cpu", torch.get_num_threads())
    content = {"sentences": SHAPE[0], "heads": SHAPE[1], "head_dim": DIM, "rows": rows, "machine": machine}
    write_result(options.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
