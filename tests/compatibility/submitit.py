"""Measurements in jobs of this machine."""

import subprocess

line = (
    "nas-ext latency collect --space hat_small --samples 2 --repeats 1 --warmup 1 --out jobs.jsonl --clock cpu"
    " --executor submitit --job jobs=2"
)
subprocess.run(line.split(), check=True)
