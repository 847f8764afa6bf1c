"""A search from a supernet to its winner on any device, in this process and in one worker for each device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nas_core.device import pinned_threads
from nas_core.errors import ConfigError
from nas_core.precision import check_precision
from nas_core.search import EvolutionConfig, HATEvolution, SearchResult, search
from nas_core.search.executor import DeviceExecutor
from nas_core.supernet import open_supernet
from nas_core.supernet.host import Supernet
from tests.devices import PRECISIONS, close_in
from tests.search.devices.device_host import HOST, KINDS, DeviceSupernet
from tests.toys import plug_in

SMALL = EvolutionConfig(iterations=2, population=8, parents=3)
ALMOST = {"fp32": 1e-4, "tf32": 1e-2, "bf16": 5e-2, "fp16": 1e-2}


@pytest.fixture
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    plug_in(tmp_path, monkeypatch, "nas_ext.hosts", "device", "tests.search.devices.device_host:HOST")
    path = tmp_path / "net.device"
    path.write_text(json.dumps({"kind": getattr(request, "param", "image")}))
    return path


def here(supernet: Supernet, folder: Path) -> SearchResult:
    """In this process, with one thread as in a worker."""
    with pinned_threads(1):
        return search(HATEvolution(supernet.space, config=SMALL), supernet.evaluate, folder, progress=False)


def losses(folder: Path) -> dict[str, float]:
    lines = (folder / "journal.jsonl").read_text().splitlines()
    return {record["key"]: record["metrics"]["loss"] for record in map(json.loads, lines)}


def supported(precision: str, device: str) -> str:
    """The precision, or a skip that says why this device has none."""
    try:
        return check_precision(precision, device)
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("checkpoint", KINDS, indirect=True)
def test_it_ends_with_finite_losses_near_those_of_the_cpu(
    checkpoint: Path, tmp_path: Path, device: str, precision: str
) -> None:
    options = {} if supported(precision, device) == "fp32" else {"precision": precision}
    supernet = open_supernet(checkpoint, device=device, **options)
    assert isinstance(supernet, DeviceSupernet) and supernet.device.type == device
    result = here(supernet, tmp_path / "run")
    plain = HOST.open(checkpoint)
    for key, architecture in ((one.key, one) for one in result.evaluated):
        assert abs(losses(tmp_path / "run")[key] - plain.evaluate(architecture)["loss"]) < ALMOST[precision]
    largest = supernet.space.largest()
    close_in(precision, supernet.logits(largest)[0].float(), plain.logits(largest)[0], times=3)
    assert result.best.metrics["loss"] == min(losses(tmp_path / "run").values())


@pytest.mark.parametrize("count", [1, 2])
def test_workers_leave_the_journal_of_one_process(checkpoint: Path, tmp_path: Path, device: str, count: int) -> None:
    """Where there is one CUDA device, the second worker is on the CPU, whose losses are almost the same; a device need
    not add in the same order each time."""
    devices = ",".join([device, "cpu"][:count])
    supernet = open_supernet(checkpoint, device=device)
    here(supernet, tmp_path / "here")
    with DeviceExecutor(checkpoint, devices) as evaluations:
        strategy = HATEvolution(supernet.space, config=SMALL)
        search(
            strategy,
            None,
            tmp_path / "workers",
            evaluate_many=evaluations,
            batch_size=evaluations.batch_size,
            progress=False,
        )
    first, several = losses(tmp_path / "here"), losses(tmp_path / "workers")
    if device == "cpu":
        files = [(tmp_path / name / "journal.jsonl").read_bytes() for name in ("here", "workers")]
        assert files[0] == files[1]
    else:
        shared = first.keys() & several.keys()
        assert shared and all(abs(first[key] - several[key]) < ALMOST["fp32"] for key in shared)


def test_a_second_device_is_the_one_that_computes(checkpoint: Path, second_device: str) -> None:
    supernet = open_supernet(checkpoint, device=second_device)
    assert isinstance(supernet, DeviceSupernet)
    logits, _ = supernet.logits(supernet.space.largest())
    assert str(logits.device) == second_device
    with DeviceExecutor(checkpoint, f"cpu,{second_device}") as evaluations:
        largest = supernet.space.largest()
        results = list(evaluations([largest, supernet.space.smallest(), largest, largest]))
    assert all(abs(results[index]["loss"] - results[0]["loss"]) < ALMOST["fp32"] for index in (2, 3))  # type: ignore[index]
