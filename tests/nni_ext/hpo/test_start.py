"""NNI's manager gives a tuner ten seconds to start: what is slow to import waits until it is needed."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from nni_ext.hpo.tuner import SearchTuner
from nni_ext.hpo.search_space import nni_search_space
from nas_core.space import get_space
for strategy in ("evolution", "random", "ranknas", "multi-objective", "hypervolume"):
    limits = {"max_params_m": 0.9, "latency_model": sys.argv[1], "max_latency_ms": 8}
    made = SearchTuner(strategy=strategy, space="hat_small", **limits)
print([name for name in ("torch", "lightgbm", "torchvision", "pytorch_lightning") if name in sys.modules])
"""


def test_tuners_start_without_torch(tmp_path: Path) -> None:
    model = tmp_path / "latency.json"
    model.touch()  # it is read with the first architecture
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(model)], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
