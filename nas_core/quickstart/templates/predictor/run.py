"""Rank networks that nobody has trained by those that were: run `python run.py` in this folder."""

import json
import os

import numpy as np
from plotly.graph_objects import Figure, Scatter

from nas_core.graph import nasbench201_string
from nas_core.predictor import ACCURACY_MODELS, kendall_tau, reader_for

CELLS = "cells.jsonl"  # {"architecture": "|nor_conv_3x3~0|+|..", "target": 0.91} per line: your trained networks
READER = "nasbench201"  # notation of the architectures, see 'nas-ext lab predictor train --help'
MODEL = os.environ.get("MODEL", "statistics")  # prior: also fitted to public benchmarks; additive
CANDIDATES = int(os.environ.get("CANDIDATES", "300"))  # untrained cells that are ranked

with open(CELLS, encoding="utf-8") as lines:
    cells = [json.loads(line) for line in lines]
graphs = [reader_for(READER).read(cell["architecture"]) for cell in cells]
accuracies = np.array([cell["target"] for cell in cells])
half = len(cells) // 2  # one half is fitted, the other evaluates
model = ACCURACY_MODELS.get(MODEL)(seed=0).fit(graphs[:half], accuracies[:half])
mean, std = model.predict_with_std(graphs[half:])
tau = kendall_tau(mean, accuracies[half:])
baseline = kendall_tau([cell["parameters"] for cell in cells[half:]], accuracies[half:])

model.fit(graphs, accuracies).save("model.safetensors")  # fitted to all cells, for the untrained ones
trained = {cell["architecture"] for cell in cells}
samples = map(nasbench201_string, np.random.default_rng(2).integers(0, 5, (CANDIDATES, 6)))
candidates = sorted(set(samples) - trained)
expected, unsure = model.predict_with_std([reader_for(READER).read(cell) for cell in candidates])
with open("ranking.csv", "w", encoding="utf-8") as file:
    file.write("accuracy,std,architecture\n")
    file.writelines(f"{expected[i]:.4f},{unsure[i]:.4f},{candidates[i]}\n" for i in np.argsort(-expected))
figure = Figure(Scatter(x=mean, y=accuracies[half:], error_x={"array": std}, mode="markers"))
figure.update_layout(xaxis_title="predicted accuracy (± std)", yaxis_title="measured accuracy")
figure.update_layout(title=f"Kendall's tau {tau:.2f}").write_html("predicted.html")
print(f"Kendall's tau {tau:.2f} on {len(cells) - half} cells, {baseline:.2f} by parameters alone; see ranking.csv")
