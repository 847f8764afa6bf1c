"""The commands that read files, each with the file that is damaged before it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A command, and the file that is damaged before it."""

    name: str
    file: str
    """Of the inputs; in a folder such as ``run/journal.jsonl``, ``{file}`` is a copy of the folder that holds it"""
    arguments: str
    """``{file}`` is the damaged one, ``{inputs}`` the folder of whole files, ``{out}`` a folder for what it writes"""
    share: int = 3
    """Of all damaged files, how many it gets beside others; slow commands get few"""
    needs: str = ""
    """A module that may be absent"""


_PREDICT = "lab predictor predict --model"
_CALIBRATE = "lab calibrate --supernet {inputs}/a.json --metric bleu --out {out}/c.safetensors --trained"
_FEW = "--strategy random --set evaluations=4 --finalists 1 --no-measure"
_SEARCH = f"search --checkpoint {{inputs}}/a.json --out {{out}}/run {_FEW}"
_DATASET = "latency dataset --device other --networks 1 --out {out}/set --from-timm"

CASES = (
    Case("space show", "space.yml", "lab space show {file}", 6),
    Case("space export", "space.yml", "lab space export {file} --format nni --out {out}/s.json", 2, "nni"),
    Case("report architecture", "a.json", "report architecture {file} --out {out}/a.png", 2),
    Case("latency fit", "measured.jsonl", "latency fit --data {file} --out {out}/m.json", 6),
    Case("latency fit, CSV", "hat.csv", "latency fit --data {file} --out {out}/m.json", 4),
    Case("latency fit, tables", "hat.npz", "latency fit --data {file} --out {out}/m.npz", 4),
    Case("latency check", "latency.json", "latency check --model {file} --data {inputs}/measured.jsonl", 6),
    Case("latency check, mlp", "latency.npz", "latency check --model {file} --data {inputs}/measured.jsonl", 4),
    Case("report latency", "measured.jsonl", "report latency {file} --out {out}/r.html", 2),
    Case("predictor train", "graphs.jsonl", "lab predictor train --data {file} --out {out}/p.safetensors"
         " --model statistics", 2),
    Case("predictor predict", "graphs.jsonl", f"{_PREDICT} {{inputs}}/predictor.safetensors --data {{file}}", 4),
    Case("predictor file", "predictor.safetensors", f"{_PREDICT} {{file}} --data {{inputs}}/graphs.jsonl", 6),
    Case("prior", "cells.jsonl", f"{_PREDICT} prior --reader nasbench201 --data {{file}}", 2),
    Case("proxies", "cells.jsonl", "lab proxies --space nasbench201 --proxy params --data {file}"
         " --out {out}/s.jsonl", 2),
    Case("calibrate", "trained.jsonl", f"{_CALIBRATE} {{file}}", 6),
    Case("calibration", "calibration.safetensors", f"{_SEARCH} --limit params_m=9 --calibration {{file}}", 4),
    Case("search", "latency.json", f"{_SEARCH} --limit latency_ms=3 --latency-model {{file}}", 3),
    Case("search goes on", "searched/run/journal.jsonl", _SEARCH.replace("{out}", "{file}") + " --limit params_m=9", 3),
    Case("search settings", "searched/run/config.yaml", _SEARCH.replace("{out}", "{file}") + " --limit params_m=9", 3),
    Case("report", "run/journal.jsonl", "report {file}", 1),
    Case("report, finalists", "run/finalists.json", "report {file}", 1),
    Case("report, settings", "run/config.yaml", "report {file}", 1),
    Case("latency train", "networks.npz", "latency train --data {file} --model flops --out {out}/m.safetensors"
         " --runtime onnxruntime", 6, "onnx"),
    Case("latency predict", "net.onnx", "latency predict {file} --model {inputs}/networks.safetensors", 12, "onnx"),
    Case("network model", "networks.safetensors", "latency predict {inputs}/net.onnx --model {file}", 6, "onnx"),
    Case("latency dataset", "published.csv", f"{_DATASET} {{file}}", 2, "timm"),
    Case("extract, images", "images.pt", "extract --checkpoint {file} --arch smallest --out {out}/s.pt", 14, "timm"),
    Case("elastic", "vit.pt", "elastic --checkpoint {file} --importance none --out {out}/e.pt", 14, "timm"),
    Case("extract, translation", "translation.pt", "extract --checkpoint {file} --arch smallest --out {out}/s.pt", 14,
         "fairseq"),
    Case("architecture of an extraction", "a.json", "extract --checkpoint {inputs}/translation.pt --arch {file}"
         " --out {out}/s.pt", 3, "fairseq"),
)  # fmt: skip
