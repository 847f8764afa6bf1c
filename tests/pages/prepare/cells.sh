# Sixty cells of NAS-Bench-201 with made-up accuracies in two families.
python - <<'P'
import json

import numpy as np

from nas_core.graph import nasbench201_string

rng = np.random.default_rng(0)
with open("cells.jsonl", "w") as file:
    for number, cell in enumerate(rng.integers(0, 5, (60, 6))):
        accuracy = 0.6 + 0.05 * int((cell == 3).sum()) + 0.02 * float(rng.standard_normal())
        values = {"target": accuracy, "accuracy": accuracy, "family": "odd" if number % 2 else "even"}
        print(json.dumps({"architecture": nasbench201_string(cell), **values}), file=file)
P
