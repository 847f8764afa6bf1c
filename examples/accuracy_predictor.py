"""Predict the accuracy of NAS-Bench-201 cells: `python examples/accuracy_predictor.py [--table FILE]`.

FILE contains one JSON object per line: {"architecture": "|nor_conv_3x3~0|+|..", "accuracy": 0.91}. Without FILE,
accuracies are computed by a formula. Prints Kendall's tau on held-out cells.
"""

import argparse
import json

import numpy as np

from nas_core.graph import nasbench201_string
from nas_core.predictor import ACCURACY_MODELS, kendall_tau, reader_for


def formula_table(count):
    operation_weights = np.array([0.0, 0.02, 0.05, 0.1, 0.01])  # none, skip, 1x1, 3x3, pooling
    edge_weights = np.array([1.0, 0.5, 1.0, 0.7, 0.5, 1.0])
    cells = np.random.default_rng(0).permutation(5**6)[:count, None] // 5 ** np.arange(6) % 5
    return [(nasbench201_string(cell), float(0.5 + (operation_weights[cell] * edge_weights).sum())) for cell in cells]


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--table", help="file of cells with accuracies in [0, 1]; default: a formula")
parser.add_argument("--learn", type=int, default=100, help="number of training cells; the others are held out")
parser.add_argument("--model", default="statistics", help="statistics, or another model of nas-ext lab predictor train")
args = parser.parse_args()
if args.table:
    with open(args.table, encoding="utf-8") as lines:
        table = [(record["architecture"], record["accuracy"]) for record in map(json.loads, lines)]
else:
    table = formula_table(500)
graphs = [reader_for("nasbench201").read(cell) for cell, _ in table]
accuracies = np.array([accuracy for _, accuracy in table])
predictor = ACCURACY_MODELS.get(args.model)(seed=0).fit(graphs[: args.learn], accuracies[: args.learn])
tau = kendall_tau(predictor.predict(graphs[args.learn :]), accuracies[args.learn :])
print(f"Kendall's tau {tau:.3f} on {len(graphs) - args.learn} cells, fitted to {args.learn} ({args.model})")
