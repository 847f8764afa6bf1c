"""Wrong inputs of the commands: exit code 2, and one line that names the value. No output is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nas_core.cli import main
from nas_core.space import get_space
from tests.cli.searching import SMALL, SPACE, score
from tests.hardening.inputs import make_inputs
from tests.toys import ToySupernet

pytest.importorskip("onnx", reason="needs onnx")
SEARCH = " ".join(
    ["search --checkpoint {i}/a.json --out {o}/run --no-measure --strategy evolution", *SMALL["evolution"]]
)
RANKNAS = "search --checkpoint {i}/a.json --out {o}/run --strategy ranknas"
LIMITED = f"{SEARCH} --latency-model {{i}}/latency.json"
JOBS = "--executor submitit"
CALIBRATE = "lab calibrate --supernet {i}/a.json --metric bleu --out {o}/c.safetensors --trained"
TRAIN = "lab predictor train --out {o}/p.safetensors"
GRAPHS = f"{TRAIN} --data {{i}}/graphs.jsonl"
CELLS = f"{TRAIN} --data {{i}}/cells.jsonl --target acc"
PREDICT = "lab predictor predict --model {i}/predictor.safetensors"
COLLECT = "latency collect --out {o}/x.jsonl --samples 3"
FIT = "latency fit --data {i}/measured.jsonl --out {o}/m.json"
CHECK = "latency check --model {i}/latency.json"
DATASET = "latency dataset --out {o}/set"
NETWORKS = "latency train --data {i}/networks.npz --out {o}/m.safetensors"
NETWORK = "latency predict {i}/net.onnx --model {i}/networks.safetensors"

WRONG = [
    ("extract --arch largest", "--checkpoint"),
    ("extract --checkpoint {i}/a.json --arch largest --out {i}/a.json", "a.json"),
    ("extract --checkpoint {i}/a.json --arch {i}/no.json --out {o}/x", "no.json"),
    ("extract --checkpoint {i}/a.json --arch {i}/other.json --out {o}/x", "qkv_dim"),
    ("extract --checkpoint {i}/a.json --arch {i}/list.json --out {o}/x", "list.json"),
    ("extract --checkpoint {i}/a.json --arch smallest --out {o}/x --plain", "model classes"),
    ("extract --checkpoint {i}/a.json --arch smallest --out {o}/x --plain --hugging-face", "--plain"),
    ("export --checkpoint {i}/no.pt --arch largest --out {o}/x", "no.pt"),
    ("export --checkpoint {i}/a.json --arch largest --out {o}/x", "a.json"),
    ("export --checkpoint {i}/a.json --arch largest --to onxn --out {o}/x", "onxn"),
    ("elastic --checkpoint {i}/a.json --out {o}/x --importance size", "size"),
    (f"{SEARCH} --limit latency_ms=5", "latency_ms"),
    (f"{LIMITED} --limit latency_ms=101%", "101.0"),
    (f"{LIMITED} --limit latency_ms=0.01", "acceptance rate 0.00%"),
    (f"{SEARCH} --limit params_m=0.00001", "closest candidate"),
    (f"{SEARCH} --set population=100", "16"),
    (f"{SEARCH} --set mutation_prob=2", "2.0"),
    (f"{SEARCH} --set ranker=boosted", "ranker"),
    (f"{SEARCH} --strategy evolutoin", "evolutoin"),
    (f"{RANKNAS} --set samples=1", "samples is 1"),
    (f"{RANKNAS} --set ranker=loss", "loss"),
    ("search --checkpoint {i}/no.pt --out {o}/run", "no.pt"),
    (f"{SEARCH} --latency-model {{i}}/no.json", "no.json"),
    (f"{SEARCH} --limit cache_mb=1 --workload beams=4", "beams"),
    (f"{SEARCH} --limit cache_mb=1 --workload beam", "'beam'"),
    (f"{SEARCH} --workload beam=4", "workload"),
    (f"{SEARCH} --further-supernet {{i}}/a.json", "further_supernet"),
    (f"{SEARCH} --calibration {{i}}/latency.json", "latency.json"),
    (f"{SEARCH} --limit params_m=9 --calibration {{i}}/calibration.safetensors --valid-samples 9", "9"),
    (f"{SEARCH} --executor slurm", "slurm"),
    (f"{SEARCH} {JOBS} --job cluster=slrum", "slrum"),
    (f"{SEARCH} {JOBS} --job jobs=0", "jobs is 0"),
    (f"{SEARCH} {JOBS} --job partition=long", "partition"),
    (f"{SEARCH} {JOBS} --job slurm.=a100", "slurm.=a100"),
    (f"{SEARCH} --job jobs=4", "jobs"),
    (f"{SEARCH} {JOBS} --device cuda:1", "cuda:1"),
    (f"{CALIBRATE} {{i}}/no.jsonl", "no.jsonl"),
    (f"{CALIBRATE} {{i}}/trained.jsonl --metric quality", "quality"),
    (f"{CALIBRATE} {{i}}/trained.jsonl --inherited top1", "top1"),
    (f"{CALIBRATE} {{i}}/trained.jsonl --trained {{i}}/trained.jsonl", "line 1"),
    (f"{CALIBRATE} {{i}}/two.jsonl", "2 trained networks"),
    (f"{CALIBRATE} {{i}}/foreign.jsonl", "line 1"),
    ("lab space show hat_smal", "hat_smal"),
    ("lab space show {i}/no.yml", "no.yml"),
    ("lab space show {i}/list.json", "list.json"),
    ("lab space export hat_small --format nnj", "nnj"),
    (f"{TRAIN} --data {{i}}/no.jsonl", "no.jsonl"),
    (f"{TRAIN} --data {{i}}/hat.csv", "hat.csv"),
    (f"{GRAPHS} --target acc", "acc"),
    (CELLS, "reader"),
    (f"{CELLS} --reader nasbench202", "nasbench202"),
    (f"{GRAPHS} --model nn-former --set recipe=papper", "papper"),
    (f"{GRAPHS} --set dmi=3", "dmi"),
    (f"{GRAPHS} --model nn-former --set epochs=2 --set epochs=3", "epochs"),
    (f"{GRAPHS} --holdout 1", "1"),
    (f"{GRAPHS} --device cuba", "cuba"),
    ("lab predictor train --data {i}/graphs.jsonl --out {i}/predictor.safetensors", "predictor.safetensors"),
    ("lab predictor train --data {i}/graphs.jsonl --out {o}/p.bin", "p.bin"),
    (f"{PREDICT} --data {{i}}/graphs.jsonl --out {{i}}/graphs.jsonl --force", "graphs.jsonl"),
    (f"{PREDICT} --data {{i}}/graphs.jsonl --unseen maybe", "maybe"),
    ("lab predictor predict --model {i}/a.json --data {i}/graphs.jsonl", "a.json"),
    ("lab predictor predict --model prior --data {i}/graphs.jsonl", "operations"),
    (f"{COLLECT} --space hat_smal", "hat_smal"),
    (f"{COLLECT} --space {{i}}/half.yml", "half"),
    (COLLECT, "--space"),
    (f"{COLLECT} --space hat_small --data {{i}}/no", "no"),
    (f"{COLLECT} --space hat_small --workload batch=3", "batch"),
    (f"{COLLECT} --space mformer_cifar10_small --data {{i}}", "data"),
    ("latency collect --space hat_small --samples 3 --out {o}/x.json", "x.json"),
    ("latency collect --space {i}/space.yml --samples 30 --out {i}/measured.jsonl --workload beam=3", "now it is"),
    ("latency fit --data {i}/no.jsonl --out {o}/m.json", "no.jsonl"),
    (f"{FIT} --model linera", "linera"),
    (f"{FIT} --set steps=3", "steps"),
    (f"{FIT} --model counts", "counts"),
    (CHECK, "--data"),
    (f"{CHECK} --architecture {{i}}/other.json", "qkv_dim"),
    ("latency check --model {i}/networks.safetensors --data {i}/measured.jsonl", "collect --predicted-by"),
    ("latency dataset", "--out"),
    (f"{DATASET} --families alexnett", "alexnett"),
    (f"{DATASET} --set runtimes=tvm", "tvm"),
    (f"{DATASET} --device cuda:77", "cuda:77"),
    (f"{NETWORKS} --model count", "count"),
    (f"{NETWORKS} --model counts --set epochs=2", "epochs"),
    ("latency train --data {i} --out {o}/m.safetensors", "holds no networks"),
    (f"{NETWORK} --runtime torch", "torch"),
    (f"{NETWORK} --shapes x=a,b", "x=a,b"),
    (f"{NETWORK} --out {{o}}/p.txt", "p.txt"),
    ("latency predict {i}/hat.csv --model {i}/networks.safetensors", "hat.csv"),
    ("report {i}/no", "no"),
    ("report {i}/run --out {o}/x.html", "x.html"),
    ("report architecture {i}/no.json", "no.json"),
    ("lab study gapp --checkpoint {i}/a.json --out {o}/x", "gapp"),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as monkeypatch:
        make_inputs(folder, monkeypatch, hosts=False)
    trained = (folder / "trained.jsonl").read_text().splitlines(keepends=True)
    foreign = get_space("hat_wmt14_en_de").largest()
    foreign.save(folder / "other.json")
    (folder / "list.json").write_text("[1, 2]")
    (folder / "two.jsonl").write_text("".join(trained[:2]))
    (folder / "foreign.jsonl").write_text(json.dumps({"genes": foreign.to_dict(), "metrics": {"bleu": 30.0}}) + "\n")
    (folder / "half.yml").write_text("choices: {layers: [1, 2]}\n")
    return folder


@pytest.mark.parametrize(("command", "value"), WRONG)
def test_one_line_names_the_value(
    command: str,
    value: str,
    inputs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    toy = ToySupernet(SPACE, score, {"kind": "translation"})
    monkeypatch.setattr("nas_core.progress.FIRST_LINE_S", float("inf"))  # no lines of progress on a busy machine
    if "no.pt" not in command:
        monkeypatch.setattr("nas_core.supernet.host.open_supernet", lambda path, **options: toy)
    before = {path: path.stat().st_mtime_ns for path in inputs.rglob("*") if path.is_file()}
    code = main([word.format(i=inputs, o=tmp_path) for word in command.split()])
    out, err = capsys.readouterr()
    errors: list[Any] = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert code == 2 and value in errors[-1], (out, err)
    assert len(errors) == 1 or "Usage:" in err
    assert not out and not list(tmp_path.iterdir())
    assert {path: path.stat().st_mtime_ns for path in inputs.rglob("*") if path.is_file()} == before
