"""Search your own space for the minimum of a formula: `python examples/search_formula.py [FOLDER]`.

Formulas compute the "error" and the "latency" of a network. Evolution searches the lowest error within 30 ms. A search
with the same FOLDER is resumed.
"""

import sys

from nas_core.search import EvolutionConfig, HATEvolution, search
from nas_core.space import Choice, SearchSpace

SPACE = SearchSpace(
    "toy-networks",
    [
        Choice.make("layers", [1, 2, 3, 4]),
        Choice.make("width", [16, 32, 64], per="layers", layers=4),
        Choice.make("activation", ["relu", "gelu"]),
    ],
)


def latency_ms(architecture):
    return 2 + sum(width / 4 for width in architecture["width"]) * (1.2 if architecture["activation"] == "gelu" else 1)


def evaluate(architecture):
    error = 1 / (1 + sum(width**0.5 / layer for layer, width in enumerate(architecture["width"], 1)))
    return error * (0.9 if architecture["activation"] == "gelu" else 1)


config = EvolutionConfig(iterations=8, population=24)
strategy = HATEvolution(SPACE, {"latency_ms": (latency_ms, 30.0)}, config)
result = search(strategy, evaluate, sys.argv[1] if len(sys.argv) > 1 else None, progress=False)
for entry in result.archive:
    print(f"error {entry.metrics['loss']:.4f}  {entry.metrics['latency_ms']:5.1f} ms  {entry.architecture.to_dict()}")
print(f"best of {result.evaluations}: {result.best.architecture.to_dict()}")
