"""``nas-ext doctor``: which hosts, accelerators and plug-ins are usable here, and how to get what is not.

Each package is imported in a process of its own: a host whose import raises, hangs or takes the interpreter down is a
finding to report, not an end of the report.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import typer

from nas_core import __version__
from nas_core.cli.plug_ins import found_plug_ins, plug_ins_table
from nas_core.errors import NasExtError
from nas_core.machine import python_environment
from nas_core.optional import install_line

__all__ = ["HOSTS", "Host", "command", "diagnose"]

_IMPORT_TIMEOUT_S = 120
_MARK = "nas-ext-probe:"
_REPAIRED = "torchvision is a CUDA build beside a CPU torch: repaired on import"
_GIB = 2**30
_NOT_STARTED = (
    "no nas_ext.pth in site-packages: fairseq needs --user-dir, torchvision is repaired only after our packages"
    " are imported; install nas-ext with pip"
)


class Host(NamedTuple):
    """An optional package and what to look for."""

    name: str
    distributions: tuple[str, ...]
    modules: tuple[str, ...]
    """All of these have to import for the host to be usable."""


HOSTS = (
    Host("fairseq", ("fairseq-fixed", "fairseq"), ("fairseq",)),
    Host("timm", ("timm",), ("timm",)),
    Host("nni", ("nni",), ("nni", "nni.nas.strategy")),
    Host("naslib", ("naslib",), ("naslib",)),
    Host("optuna", ("optuna",), ("optuna",)),
    Host("onnx", ("onnx",), ("onnx", "onnxruntime")),
)


CUDA_PACKAGES = {
    "triton": ("triton", "pytorch-triton"),
    "flash-linear-attention": ("flash-linear-attention",),
    "onnxruntime-gpu": ("onnxruntime-gpu",),
    "nvidia-ml-py": ("nvidia-ml-py",),
}
"""What has a use on CUDA devices alone: name -> the distributions that bring it."""


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plug_ins: Annotated[
        bool, typer.Option("--plug-ins", help="Look at what other distributions plug in alone, which is faster.")
    ] = False,
) -> None:
    """Show which hosts, accelerators and plug-ins are usable, with versions and what to do about what is not."""
    findings = {"plug_ins": found_plug_ins()} if plug_ins else diagnose()
    table = "\n".join(plug_ins_table(findings["plug_ins"])) if plug_ins else ""
    typer.echo(json.dumps(findings, indent=2) if as_json else table or findings_table(findings))


def diagnose() -> dict[str, Any]:
    """Everything found, as plain types: ``nas_ext``, ``startup``, ``python``, ``platform``, ``torch``,
    ``accelerators``, ``cuda_packages``, ``hosts`` and ``plug_ins``.

    ``torch`` and each host have ``installed``, ``importable``, ``version``, ``error`` (why it does not import) and
    ``install`` (the shell line; None when the package is usable). ``startup`` is whether every Python of this
    environment starts with :mod:`nas_core.startup`, so that fairseq finds us without ``--user-dir``. Hosts that import
    torchvision have ``torchvision_fix`` (whether its import had to be repaired). Accelerators have ``kind``, ``name``,
    the ``device`` to give, and the ``precisions`` they compute in; those of CUDA ``memory_gib`` and ``capability`` as
    well. CUDA packages have their version, None where they are not installed.
    Plug-ins are those of :func:`~nas_core.cli.plug_ins.found_plug_ins`.
    """
    torch = _examine(Host("torch", ("torch",), ("torch",)), "pip install 'torch>=2.6,<2.14'")
    return {
        "nas_ext": __version__,
        "startup": _is_present("_nas_ext_start"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "accelerators": torch.pop("accelerators", []),
        "cuda_packages": {name: _version(brought_by) for name, brought_by in CUDA_PACKAGES.items()},
        "torch": torch,
        "hosts": {host.name: _examine(host, install_line(host.name)) for host in HOSTS},
        "plug_ins": found_plug_ins(),
    }


def _examine(host: Host, install: str) -> dict[str, Any]:
    finding: dict[str, Any] = {
        "installed": all(_is_present(module) for module in host.modules),
        "importable": False,
        "version": _version(host.distributions),
        "error": None,
        "install": install,
    }
    if not finding["installed"]:
        return finding
    answer = run_probe(host.modules)
    finding["version"] = finding["version"] or answer.get("version")
    finding["error"] = answer.get("error")
    finding["importable"] = finding["error"] is None
    if finding["importable"]:
        finding["install"] = None
    for extra in ("accelerators", "torchvision_fix"):
        if extra in answer:
            finding[extra] = answer[extra]
    return finding


def _is_present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _version(distributions: tuple[str, ...]) -> str | None:
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def run_probe(modules: tuple[str, ...]) -> Mapping[str, Any]:
    """What `probe` finds in a fresh interpreter with the search path of this one."""
    code = f"from nas_core.cli.doctor import probe; probe({modules!r})"
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code],
            env=python_environment(),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_IMPORT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"the import did not end within {_IMPORT_TIMEOUT_S} s"}
    except OSError as error:
        return {"error": f"cannot start {sys.executable}: {error}"}
    answers = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not answers:
        return {"error": f"the import ended the interpreter (exit code {done.returncode})"}
    answer: dict[str, Any] = json.loads(answers[-1].removeprefix(_MARK))
    return answer


def probe(modules: tuple[str, ...]) -> None:
    """Import the modules here and print one marked line of JSON; run in a process of its own."""
    answer: dict[str, Any] = {}
    try:
        if modules[0] in ("timm", "nni", "naslib"):
            from nas_core.torchvision_fix import apply_torchvision_fix

            answer["torchvision_fix"] = apply_torchvision_fix()
        for name in modules:
            module = importlib.import_module(name)
            answer.setdefault("version", getattr(module, "__version__", None))
        if modules[0] == "torch":
            answer["accelerators"] = _accelerators()
    except BaseException as error:  # some packages leave by sys.exit
        lines = str(error).strip().splitlines() or [""]
        answer["error"] = f"{type(error).__name__}: {lines[0]}".removesuffix(": ")
    version = answer.get("version")
    answer["version"] = None if version is None else str(version)
    print(f"\n{_MARK}{json.dumps(answer)}", flush=True)


def _accelerators() -> list[dict[str, Any]]:
    """The devices torch can compute on beside the CPU; one that fails a first addition is not listed."""
    import torch

    found = [_cuda_device(index) for index in range(torch.cuda.device_count()) if _adds(f"cuda:{index}")]
    if torch.backends.mps.is_available() and _adds("mps"):
        found.append(
            {"kind": "mps", "name": platform.processor() or "Apple", "device": "mps", "precisions": _precisions("mps")}
        )
    return found


def _cuda_device(index: int) -> dict[str, Any]:
    import torch

    properties = torch.cuda.get_device_properties(index)
    return {
        "kind": "cuda",
        "name": properties.name,
        "device": f"cuda:{index}",
        "memory_gib": round(properties.total_memory / _GIB, 1),
        "capability": f"{properties.major}.{properties.minor}",
        "precisions": _precisions(f"cuda:{index}"),
    }


def _precisions(device: str) -> list[str]:
    from nas_core.precision import PRECISIONS, check_precision

    found = []
    for precision in PRECISIONS:
        with contextlib.suppress(NasExtError):
            found.append(check_precision(precision, device))
    return found


def _adds(device: str) -> bool:
    import torch

    try:
        return float(torch.ones(2, device=device).sum()) == 2.0
    except RuntimeError:
        return False


def described_device(device: Mapping[str, Any]) -> str:
    """One line: what to give, and what it is."""
    told = [device["name"]]
    if device["kind"] == "cuda":
        told += [f"{device['memory_gib']:g} GiB", f"compute capability {device['capability']}"]
    return f"{device['device']} ({', '.join(told)}): {', '.join(device['precisions'])}"


def findings_table(findings: Mapping[str, Any]) -> str:
    """The findings as people read them."""
    lines = [
        f"{'nas-ext':<12} {findings['nas_ext']}",
        *([] if findings.get("startup", True) else [f"{'':<12} -> {_NOT_STARTED}"]),
        f"{'python':<12} {findings['python']} on {findings['platform']}",
        *(f"{'accelerator':<12} {described_device(device)}" for device in findings["accelerators"]),
    ]
    if not findings["accelerators"]:
        lines.append(f"{'accelerator':<12} none: the CPU is used")
    elif any(device["kind"] == "cuda" for device in findings["accelerators"]):
        packages = (f"{name} {version or 'not installed'}" for name, version in findings["cuda_packages"].items())
        lines.append(f"{'for CUDA':<12} {', '.join(packages)}")
    for name, finding in {"torch": findings["torch"], **findings["hosts"]}.items():
        version = finding["version"] or "(version unknown)"
        if finding["importable"]:
            lines.append(f"{name:<12} {version}{', ' + _REPAIRED if finding.get('torchvision_fix') else ''}")
        elif finding["installed"]:
            lines.append(f"{name:<12} {version}, does not import: {finding['error']}")
            lines.append(f"{'':<12} -> {finding['install']}")
        else:
            lines.append(f"{name:<12} not installed")
            lines.append(f"{'':<12} -> {finding['install']}")
    return "\n".join([*lines, *plug_ins_table(findings["plug_ins"])])
