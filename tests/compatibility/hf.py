"""A small BERT, converted, trained as a supernet for two updates, searched and compressed."""

import os
import subprocess

from transformers import AutoModelForMaskedLM

subprocess.run(["nas-ext", "quickstart", "encoder", "encoder"], check=True)
short = {"UPDATES": "2", "SAMPLES": "16", "EVALUATIONS": "3"}
subprocess.run(["bash", "run.sh"], cwd="encoder", env={**os.environ, **short}, check=True)
assert AutoModelForMaskedLM.from_pretrained("encoder/out/faster")

compress = "nas-ext compress --checkpoint out/trained --data texts --limit latency_ms=80% --updates 2 --batch-size 8"
subprocess.run([*compress.split(), "--valid-samples", "8", "--out", "out/small"], cwd="encoder", check=True)
AutoModelForMaskedLM.from_pretrained("encoder/out/small")
