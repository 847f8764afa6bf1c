"""Wrong inputs of the top-level modules: the type of the error, and one line that names the value."""

from __future__ import annotations

from typing import Any

import pytest

from nas_core.checks import Range, checked_value
from nas_core.device import usable_device, usable_devices
from nas_core.differences import check_same_settings
from nas_core.errors import ConfigError, NasExtError
from nas_core.errors import UnknownChoiceError as Unknown
from nas_core.files.writing import make_folder
from nas_core.jobs import JobsConfig, jobs_config
from nas_core.locks import file_lock
from nas_core.options import parsed_settings, read_pairs
from nas_core.precision import check_precision

WRONG: list[tuple[Any, type[NasExtError], str]] = [
    (lambda: checked_value(True, int, "n"), ConfigError, "True"),
    (lambda: checked_value(0, int, "n", Range(1)), ConfigError, "from 1 on"),
    (lambda: checked_value(float("nan"), float, "x"), ConfigError, "nan"),
    (lambda: checked_value(1.0, float, "x", Range(0, 1, exclude=(1,))), ConfigError, "below 1"),
    (lambda: checked_value("fat", str, "how", choices=("fast", "slow")), Unknown, "fast"),
    (lambda: read_pairs("set", ["=4"]), ConfigError, "'=4'"),
    (lambda: parsed_settings(["dim"], {"dim": int}), ConfigError, "'dim'"),
    (lambda: parsed_settings(["dmi=3"], {"dim": int}), Unknown, "dim"),
    (lambda: parsed_settings(["dim=3", "dim=4"], {"dim": int}), ConfigError, "['3', '4']"),
    (lambda: parsed_settings(["dim=x"], {"dim": int}), ConfigError, "'x'"),
    (lambda: parsed_settings(["fast=x"], {"fast": bool}), ConfigError, "true or false"),
    (lambda: check_same_settings("it has", {"a": 1}, {"a": 2}, "start anew"), ConfigError, "a = 1, now it is 2"),
    (lambda: usable_device("cuba"), ConfigError, "cuba"),
    (lambda: usable_devices("cpu,,"), ConfigError, "cpu,,"),
    (lambda: usable_devices("cpu,cuba"), ConfigError, "cuba"),
    (lambda: usable_devices("cpu,cuda:77"), ConfigError, "cuda:77"),
    (lambda: check_precision("fp8", "cpu"), Unknown, "fp8"),
    (lambda: check_precision("tf32", "cpu"), ConfigError, "tf32"),
    (lambda: JobsConfig(cluster="lokal"), Unknown, "local"),
    (lambda: JobsConfig(per_job=0), ConfigError, "per_job is 0"),
    (lambda: JobsConfig(memory_gb=0.0), ConfigError, "0.0"),
    (lambda: JobsConfig(partition="long"), ConfigError, "partition"),
    (lambda: jobs_config("submitit", "cpu,cpu", {}), ConfigError, "cpu,cpu"),
    (lambda: make_folder("/dev/null/below"), NasExtError, "/dev/null/below"),
    (lambda: file_lock("/dev", "works", "wait").__enter__(), NasExtError, "/dev"),
]


@pytest.mark.parametrize(("call", "kind", "value"), WRONG)
def test_wrong_inputs(call: Any, kind: type[NasExtError], value: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert value in str(caught.value) and "\n" not in str(caught.value)
