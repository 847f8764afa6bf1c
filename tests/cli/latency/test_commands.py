"""``nas-ext latency`` end to end on a very small workload."""

import json

import pytest

from nas_core.cli import main
from nas_core.errors import MissingHostError
from nas_core.latency import load_latency_model
from nas_core.space import get_space
from nas_core.supernet import Host, host

SHORT = [
    "--workload=vocab=40",
    "--workload=source_length=4",
    "--workload=target_length=3",
    "--workload=beam=2",
    "--repeats=2",
    "--warmup=1",
]


def run(capsys, *arguments):
    code = main(["latency", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    path = tmp_path_factory.mktemp("latency") / "lat.jsonl"
    arguments = ["latency", "collect", "--space", "hat_small", "--out", str(path), "--samples", "24", *SHORT]
    assert main(arguments) == 0
    return path


def test_collect_fit_check(measured, tmp_path, capsys):
    code, out, err = run(capsys, "fit", "--data", measured, "--out", tmp_path / "m.json")
    assert code == 0
    assert "coverage %  measurements inside the 90 % prediction interval; about 90 is expected" in out
    assert "warning: the metrics come from only 5 measurements; measure more architectures" in err
    assert all(word in out for word in ("MAPE", "R2", "tau", "coverage", "held out"))
    space = get_space("hat_small")
    model = load_latency_model(tmp_path / "m.json", "genes", space)
    assert model.info["settings"]["workload"]["beam"] == 2 and model.info["machine"]["torch"]

    code, out, _ = run(capsys, "check", "--model", tmp_path / "m.json", "--data", measured)
    assert code == 0 and "as measured" in out and "in the machine state of the fit" in out

    space.largest().save(tmp_path / "a.json")
    code, out, err = run(capsys, "check", "--model", tmp_path / "m.json", "--architecture", tmp_path / "a.json")
    assert code == 0 and err == ""
    assert all(word in out for word in ("predicted", "measured, as in the fit", "encoder", "decoder"))


def test_vocabularies_of_a_data_folder(tmp_path, capsys, monkeypatch):
    class ToyHost(Host):
        def vocabularies(self, data):
            return (50, 30) if (data / "words").exists() else None

    monkeypatch.setattr(host, "each_host", lambda: iter([("other", Host()), ("toy", ToyHost())]))
    (tmp_path / "bin").mkdir()
    path, short = tmp_path / "lat.jsonl", SHORT[1:]
    command = ["collect", "--space", "hat_small", "--out", path, "--samples", 2, *short, "--data"]
    for data, message in ((tmp_path / "none", "does not exist"), (tmp_path / "bin", "contains no vocabularies")):
        code, out, err = run(capsys, *command, data)
        assert (code, out) == (2, "") and message in err and err.count("\n") == 1
    (tmp_path / "bin" / "words").touch()
    code, _, err = run(capsys, *command, tmp_path / "bin", "--workload", "vocab=40")
    assert code == 2 and "not both" in err and not path.exists()
    assert run(capsys, *command, tmp_path / "bin")[0] == 0
    workload = json.loads(path.read_text().splitlines()[0])["settings"]["workload"]
    assert (workload["source_vocab"], workload["target_vocab"]) == (50, 30)
    monkeypatch.setattr(host, "each_host", lambda: iter([("gone", MissingHostError("pip install it"))]))
    assert "pip install it" in run(capsys, *command, tmp_path / "bin")[2]
