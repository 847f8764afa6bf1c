"""Time and memory of decoding, by position, for language models with linear, half linear or softmax layers.

``python -m benchmarks decoding_length``: milliseconds of a decoding step after 256 and after 8,192 tokens, and memory
of attention. Networks have random weights. Measurements at the two positions alternate, so that their ratio does not
depend on the machine's load.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.parts.record import command, write_result
from benchmarks.parts.timing import compare_times
from nas_core.latency.machine import describe_machine
from nas_core.models.language import LanguageConfig, LanguageNet
from nas_core.models.language.net import LanguageCache, LanguageSubnet
from nas_core.random_streams import own_streams
from nas_core.space import Architecture, SearchSpace
from nas_core.space.language import language_space

RESULT = Path(__file__).parents[1] / "results" / "decoding_length.json"
LAYERS = 6
POSITIONS = (256, 8192)
STEPS = 16
MAX_RATIO = 1.2
"""Largest accepted ratio between the steps at the last and the first position, with linear layers only."""
LAYOUTS = {
    "all linear": ("linear",) * LAYERS,
    "every second linear": ("softmax", "linear") * (LAYERS // 2),
    "all softmax": ("softmax",) * LAYERS,
}


def network(kinds: Sequence[str], width: int, vocab: int) -> tuple[LanguageNet, LanguageSubnet]:
    space = language_space(
        "decoding", layers=(LAYERS,), embed_dims=(width,), ffn_dims=(4 * width,), heads=(width // 32,), head_dim=32,
        context_length=POSITIONS[-1] + STEPS, attention=("softmax", "linear"),
    )  # fmt: skip
    architecture = Architecture({**space.largest().to_dict(), "attention": list(kinds)})
    with own_streams(0):
        net = LanguageNet(SearchSpace.of(architecture, like=space), vocab, LanguageConfig(norm_first=True)).eval()
    with torch.no_grad():
        return net, net.select(architecture)


def decode_function(
    net: LanguageNet, subnet: LanguageSubnet, prompt_length: int, vocab: int
) -> tuple[Callable[[], object], int]:
    """Return a function that decodes tokens after a prompt, and the bytes of the prompt's cache."""
    generator = torch.Generator().manual_seed(prompt_length)
    tokens = torch.randint(4, vocab, (1, prompt_length + STEPS), generator=generator)
    with torch.inference_mode():
        _, cache = net.read(subnet, tokens[:, :prompt_length])

    def run() -> None:
        with torch.inference_mode():
            decoded = cache.copy()
            for position in range(prompt_length, prompt_length + STEPS):
                net.step(subnet, tokens[:, position], decoded)

    return run, cache_bytes(cache)


def cache_bytes(cache: LanguageCache) -> int:
    return sum(tensor.nbytes for past in cache.past if past is not None for tensor in past.tensors())


def measure(kinds: Sequence[str], width: int, vocab: int, repeats: int, name: str) -> dict[str, Any]:
    """Return milliseconds of a step, their ratio, and megabytes of the cache, by position."""
    net, subnet = network(kinds, width, vocab)
    runs, state_mb = {}, {}
    for position in POSITIONS:
        runs[str(position)], size = decode_function(net, subnet, position, vocab)
        state_mb[str(position)] = round(size / 2**20, 4)
    first, last = map(str, POSITIONS)
    times = compare_times(runs, repeats, name, first)
    step_ms = {
        position: {key: round(ms / STEPS, 4) for key, ms in row.items()} for position, row in times["ms"].items()
    }
    return {"attention": list(kinds), "step_ms": step_ms, "ratio": times[f"{first}_times"][last], "state_mb": state_mb}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--width", type=int, default=256, help="number of channels, 32 per head")
    parser.add_argument("--vocab", type=int, default=8000)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    rows = {}
    for name, kinds in LAYOUTS.items():
        rows[name] = measure(kinds, options.width, options.vocab, options.repeats, name)
        print(name, rows[name]["step_ms"], rows[name]["ratio"])
    content = {
        "layers": LAYERS,
        "width": options.width,
        "vocab": options.vocab,
        "positions": POSITIONS,
        "steps": STEPS,
        "repeats": options.repeats,
        "layouts": rows,
        "aim": {"ratio of all linear": rows["all linear"]["ratio"]["median"], "at most": MAX_RATIO},
        "machine": describe_machine("cpu", torch.get_num_threads()),
    }
    write_result(options.out, content, command(__file__, argv))


if __name__ == "__main__":
    main()
