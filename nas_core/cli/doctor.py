"""``nas-ext doctor``: which hosts, accelerators and plug-ins are usable here, and how to get what is not.

By default the metadata and version files of the installed packages are read, which takes a second. With ``--import``
each package is imported as well, in a process of its own: a host whose import raises, hangs or takes the interpreter
down is a finding to report, not an end of the report.
"""

from __future__ import annotations

import contextlib
import importlib
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
from nas_core.cli.requirements import installed_version, unmet_requirements
from nas_core.errors import NasExtError
from nas_core.machine import python_environment
from nas_core.optional import install_line
from nas_core.torchvision_fix import apply_torchvision_fix, cuda_mismatch

__all__ = ["HOSTS", "Host", "command", "diagnose"]

_IMPORT_TIMEOUT_S = 120
_MARK = "nas-ext-probe:"
_REPAIRED = "torchvision is a CUDA build beside a CPU torch: repaired on import"
_GIB = 2**30
_NOT_STARTED = (
    "no nas_ext.pth in site-packages: fairseq needs --user-dir, torchvision is repaired only after our packages"
    " are imported; install nas-ext with pip"
)
_NOT_TRIED = "not tried; nas-ext doctor --import imports each host and plug-in"


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
_TORCH = Host("torch", ("torch",), ("torch",))
_TORCHAUDIO = Host("torchaudio", ("torchaudio",), ("torchaudio",))
_WITHOUT_TORCHAUDIO = "pip uninstall torchaudio  # only fairseq's speech tasks need it"
_USES_TORCHVISION = ("timm", "nni", "naslib")

CUDA_PACKAGES = {
    "triton": ("triton", "pytorch-triton"),
    "flash-linear-attention": ("flash-linear-attention",),
    "onnxruntime-gpu": ("onnxruntime-gpu",),
    "nvidia-ml-py": ("nvidia-ml-py",),
}
"""What has a use on CUDA devices alone: name -> the distributions that bring it."""


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    imports: Annotated[
        bool, typer.Option("--import", help="Import each host and plug-in too, each in a process of its own.")
    ] = False,
    plug_ins: Annotated[
        bool, typer.Option("--plug-ins", help="Look at what other distributions plug in alone, and import it.")
    ] = False,
) -> None:
    """Show which hosts, accelerators and plug-ins are usable, with versions and what to do about what is not."""
    findings = {"plug_ins": found_plug_ins()} if plug_ins else diagnose(imports)
    table = "\n".join(plug_ins_table(findings["plug_ins"])) if plug_ins else ""
    typer.echo(json.dumps(findings, indent=2) if as_json else table or findings_table(findings))


def diagnose(imports: bool = False) -> dict[str, Any]:
    """Everything found, as plain types: ``nas_ext``, ``startup``, ``python``, ``platform``, ``torch``, ``torchaudio``,
    ``accelerators``, ``cuda_packages``, ``hosts`` and ``plug_ins``.

    ``torch``, ``torchaudio`` and each host have ``installed``, ``importable`` (None: not tried), ``version``,
    ``problems`` (lines: why it does not import, versions of its dependencies that do not fit) and ``install`` (the
    shell line; None where there is no problem). ``startup`` is whether every Python of this environment starts with
    :mod:`nas_core.startup`, so that fairseq finds us without ``--user-dir``. Hosts that import torchvision have
    ``torchvision_fix`` (whether its import has to be repaired). Accelerators have ``kind``, ``name``, the ``device`` to
    give, and the ``precisions`` they compute in; those of CUDA ``memory_gib`` and ``capability`` as well.
    CUDA packages have their version, None where they are not installed.
    Plug-ins are those of :func:`~nas_core.cli.plug_ins.found_plug_ins`.

    Args:
        imports: import each host and plug-in. Otherwise only torch is imported, and only where it was not built for
            the CPU alone: it knows the accelerators.
    """
    core = unmet_requirements("nas-ext")
    for_cpu = (installed_version("torch") or "").endswith("+cpu")
    torch = _examine(_TORCH, "pip install nas-ext", core, imports or not for_cpu)
    audio = unmet_requirements("torchaudio")
    if cuda_mismatch("torchaudio"):
        audio.append("a CUDA build next to a CPU torch: it cannot be imported, nor packages that use it (transformers)")
    return {
        "nas_ext": __version__,
        "startup": _is_present("_nas_ext_start"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "accelerators": torch.pop("accelerators", []),
        "cuda_packages": {name: installed_version(*brought_by) for name, brought_by in CUDA_PACKAGES.items()},
        "torch": torch,
        "torchaudio": _examine(_TORCHAUDIO, _WITHOUT_TORCHAUDIO, audio, imports),
        "hosts": {
            host.name: _examine(
                host,
                install_line(host.name),
                [line for line in unmet_requirements(f"nas-ext[{host.name}]") if line not in core],
                imports,
            )
            for host in HOSTS
        },
        "plug_ins": found_plug_ins(imports),
    }


def _examine(host: Host, install: str, problems: list[str], imports: bool) -> dict[str, Any]:
    """Look at a package, whose dependencies have these problems."""
    installed = all(_is_present(module) for module in host.modules)
    finding: dict[str, Any] = {
        "installed": installed,
        "importable": None if installed else False,
        "version": installed_version(*host.distributions),
        "problems": problems if installed else [],
        "install": install,
    }
    if not installed:
        return finding
    if host.name in _USES_TORCHVISION:
        finding["torchvision_fix"] = cuda_mismatch("torchvision")
    if imports:
        answer = run_probe(host.modules)
        error = answer.get("error")
        finding["version"] = finding["version"] or answer.get("version")
        finding["importable"] = error is None
        if error is not None:
            finding["problems"] = [f"does not import: {error}", *problems]
        if "accelerators" in answer:
            finding["accelerators"] = answer["accelerators"]
    if not finding["problems"]:
        finding["install"] = None
    return finding


def _is_present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


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
        if modules[0] in _USES_TORCHVISION:
            apply_torchvision_fix()
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
    named = {"torch": findings["torch"], "torchaudio": findings["torchaudio"], **findings["hosts"]}
    for name, finding in named.items():
        if name == "torchaudio" and not finding["problems"]:  # nothing of ours needs it
            continue
        repaired = finding.get("torchvision_fix")
        if not finding["installed"]:
            lines.append(f"{name:<12} not installed")
        else:
            version = finding["version"] or "(version unknown)"
            lines.append(f"{name:<12} {', '.join([version, *finding['problems'], *[_REPAIRED] * bool(repaired)])}")
        if finding["install"]:
            lines.append(f"{'':<12} -> {finding['install']}")
    lines += plug_ins_table(findings["plug_ins"])
    if findings["torch"]["importable"] is None or any(one["importable"] is None for one in findings["hosts"].values()):
        lines.append(f"{'imports':<12} {_NOT_TRIED}")
    return "\n".join(lines)
