"""``nas-ext doctor``: show usable hosts, accelerators and plug-ins, and how to install missing ones.

Only package metadata are read. ``--import`` also imports each package in a separate process.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from nas_core import __version__
from nas_core.adapters import Adapter
from nas_core.errors import NasExtError, check_choice
from nas_core.machine import python_environment
from nas_core.optional import install_line
from nas_core.registry import first_line, import_object
from nas_core.torchvision_fix import cuda_mismatch, repair

_TIMEOUT_S = 120
_MARK = "nas-ext-probe:"
_NOT_STARTED = (
    "no nas_ext.pth in site-packages: fairseq needs --user-dir, torchvision is repaired only after our packages"
    " are imported; install nas-ext with pip"
)
_REPAIRED = "torchvision is a CUDA build next to a CPU torch: repaired on import"
_REMOVE_TORCHAUDIO = "pip uninstall torchaudio  # only fairseq's speech tasks need it"
_USES_TORCHVISION = ("timm", "nni", "naslib")
_NOT_NEEDED = "torchaudio"
"""Dependency of fairseq's speech tasks only; ``tools/setup.sh`` may remove it."""


class Host(NamedTuple):
    """Optional package: a host framework or backend."""

    name: str
    distributions: tuple[str, ...]
    modules: tuple[str, ...]
    """Modules that must be importable."""


TORCH = Host("torch", ("torch",), ("torch",))
TORCHAUDIO = Host("torchaudio", ("torchaudio",), ("torchaudio",))
HOSTS = (
    Host("fairseq", ("fairseq-fixed", "fairseq"), ("fairseq",)),
    Host("timm", ("timm",), ("timm",)),
    Host("hf", ("transformers",), ("transformers", "accelerate")),
    Host("nni", ("nni",), ("nni", "nni.nas.strategy")),
    Host("naslib", ("naslib",), ("naslib",)),
    Host("optuna", ("optuna",), ("optuna",)),
    Host("onnx", ("onnx",), ("onnx", "onnxruntime")),
)
CUDA_PACKAGES = {
    "triton": ("triton", "pytorch-triton"),
    "onnxruntime-gpu": ("onnxruntime-gpu",),
}
"""Package for CUDA devices -> names under which it is distributed."""
GROUPS = {
    "nas_ext.accuracy_models": "nas_core.predictor:ACCURACY_MODELS",
    "nas_ext.attention_kinds": "nas_core.layers.attention:ATTENTION_KINDS",
    "nas_ext.graph_readers": "nas_core.predictor:READERS",
    "nas_ext.hosts": "nas_core.adapters:ADAPTERS",
    "nas_ext.latency_models": "nas_core.latency:LATENCY_MODELS",
    "nas_ext.network_kinds": "nas_core.models:NETWORK_KINDS",
    "nas_ext.strategies": "nas_core.search:STRATEGIES",
}
"""Group of entry points -> its registry."""


def command(
    imports: Annotated[
        bool, typer.Option("--import", help="Also import each host and plug-in, in separate processes.")
    ] = False,
    plug_ins: Annotated[
        bool, typer.Option("--plug-ins", help="Show only plug-ins of other distributions, and import them.")
    ] = False,
) -> None:
    """Show which hosts, accelerators and plug-ins are usable, with versions and how to install missing ones."""
    for name, text in plug_in_rows(True) if plug_ins else rows(imports):
        typer.echo(f"{name:<12} {text}")


def rows(imports: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table as (name, text).

    Args:
        imports: import each host and plug-in.
    """
    yield "nas-ext", __version__
    if not _is_present("_nas_ext_start"):
        yield "", f"-> {_NOT_STARTED}"
    yield "python", f"{platform.python_version()} on {platform.platform()}"
    for_cpu = (installed_version("torch") or "").endswith("+cpu")
    devices, problems = ([], []) if for_cpu and not imports else probe("accelerators")
    for device in devices or ["none: the CPU is used"]:
        yield "accelerator", device
    if any(device.startswith("cuda") for device in devices or ()):
        versions = {name: installed_version(*packages) for name, packages in CUDA_PACKAGES.items()}
        yield "for CUDA", ", ".join(f"{name} {version or 'not installed'}" for name, version in versions.items())
    core = unmet_requirements("nas-ext")
    yield from _host_rows(TORCH, "pip install nas-ext", [*problems, *core], False)
    unmet = unmet_requirements("torchaudio")
    if cuda_mismatch("torchaudio"):
        unmet.append("a CUDA build next to a CPU torch: it cannot be imported, nor packages that use it (transformers)")
    if _is_present("torchaudio"):
        audio = list(_host_rows(TORCHAUDIO, _REMOVE_TORCHAUDIO, unmet, imports))
        yield from audio if len(audio) > 1 else ()  # it is optional
    for host in HOSTS:
        unmet = [line for line in unmet_requirements(f"nas-ext[{host.name}]") if line not in core]
        yield from _host_rows(host, install_line(host.name), unmet, imports)
    yield from plug_in_rows(imports)
    if not imports:
        yield "imports", "not tried; nas-ext doctor --import imports each host and plug-in"


def _host_rows(host: Host, install: str, unmet: list[str], imports: bool) -> Iterator[tuple[str, str]]:
    if not all(map(_is_present, host.modules)):
        yield from ((host.name, "not installed"), ("", f"-> {install}"))
        return
    problems = [*(probe("import_host", *host.modules)[1] if imports else ()), *unmet]
    repaired = [_REPAIRED] if host.name in _USES_TORCHVISION and cuda_mismatch("torchvision") else []
    yield host.name, ", ".join([installed_version(*host.distributions) or "(version unknown)", *problems, *repaired])
    if problems:
        yield "", f"-> {install}"


def _is_present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def installed_version(*distributions: str) -> str | None:
    """Return the version of the first installed distribution; None if none is installed."""
    for name in distributions:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return None


def unmet_requirements(package: str) -> list[str]:
    """Return a line for each unmet requirement of a package such as ``nas-ext[timm]`` and its direct dependencies."""
    outer = Requirement(package)
    requirements = list(_requirements(outer))
    unmet = []
    for name, requirement in [
        *((outer.name, requirement) for requirement in requirements),
        *((dependency.name, inner) for dependency in requirements for inner in _requirements(dependency)),
    ]:
        version = installed_version(requirement.name)
        if version is not None and not requirement.specifier.contains(version, prereleases=True):
            unmet.append(f"{name} needs {requirement.name}{requirement.specifier}, but {version} is installed")
        elif version is None and requirement.name != _NOT_NEEDED:
            unmet.append(f"{name} needs {requirement.name}{requirement.specifier}, which is not installed")
    return list(dict.fromkeys(unmet))


def _requirements(package: Requirement) -> Iterator[Requirement]:
    try:
        lines = importlib.metadata.requires(package.name) or []
    except importlib.metadata.PackageNotFoundError:
        return
    for line in lines:
        with contextlib.suppress(InvalidRequirement):  # as old packages have them
            requirement = Requirement(line)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in package.extras or {""}):
                yield requirement


def installed_plug_ins() -> list[tuple[str, str, str, str]]:
    """Return group, name, object and distribution of each ``nas_ext.*`` entry point of other distributions."""
    return sorted(
        {
            (entry.group, entry.name, entry.value, f"{distribution.name} {distribution.version}")
            for distribution in importlib.metadata.distributions()
            if canonicalize_name(distribution.name or "nas-ext") != "nas-ext"
            for entry in distribution.entry_points
            if entry.group.startswith("nas_ext.")
        }
    )


def plug_in_rows(imports: bool) -> Iterator[tuple[str, str]]:
    plug_ins = installed_plug_ins()
    if not plug_ins:
        yield "plug-ins", "none of other distributions"
    for group, name, target, distribution in plug_ins:
        errors = probe("check_plug_in", group, name, target)[1] if imports else []
        state = f": {'not usable' if errors else 'usable'}" if imports else ""
        yield "plug-in", f"{group.removeprefix('nas_ext.')}: {name}, of {distribution}{state}"
        yield from (("", f"-> {error}") for error in errors)


# -- in processes of their own -----------------------------------------------------------------------------------------


def probe(function: str, *arguments: str) -> tuple[Any, list[str]]:
    """Call a function of this module in a new interpreter; return its result (None on failure) and its errors."""
    code = f"from nas_core.cli.doctor import print_result; print_result({function!r}, {arguments!r})"
    command = [sys.executable, "-P", "-c", code]
    try:
        completed = subprocess.run(
            command, env=python_environment(), capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return None, [f"its import did not end within {_TIMEOUT_S} s"]
    for line in completed.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith(_MARK):
            result, errors = json.loads(line.removeprefix(_MARK))
            return result, errors
    return None, [f"its import ended the interpreter (exit code {completed.returncode})"]


def print_result(function: str, arguments: tuple[str, ...]) -> None:
    result, errors = None, []
    try:
        result = globals()[function](*arguments)
    except NasExtError as error:
        errors = [str(error)]
    except BaseException as error:  # some packages leave by sys.exit
        errors = [f"does not import: {first_line(error)}"]
    print(f"\n{_MARK}{json.dumps([result, errors])}", flush=True)


def import_host(*modules: str) -> None:
    if modules[0] in _USES_TORCHVISION:
        repair()
    for module in modules:
        importlib.import_module(module)


def check_plug_in(group: str, name: str, target: str) -> None:
    """Import a plug-in; for an adapter, all its parts."""
    check_choice("group of entry points", group, GROUPS)
    member = import_object("registry", GROUPS[group]).get(name)
    if isinstance(member, Adapter):
        for part in filter(None, [member.host, member.commands, member.network_families, member.space_format]):
            import_object(f"part of {name!r}", part)


def accelerators() -> list[str]:
    """Return a description of each device that torch can use, with its precisions."""
    import torch

    from nas_core.device import usable_device
    from nas_core.precision import PRECISIONS, check_precision

    names = {}
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        memory, capability = (
            f"{properties.total_memory / 2**30:.4g} GiB",
            f"compute capability {properties.major}.{properties.minor}",
        )
        names[f"cuda:{index}"] = f"{properties.name}, {memory}, {capability}"
    described = []
    for device, name in names.items():
        precisions = []
        with contextlib.suppress(NasExtError):
            usable_device(device)
            for precision in PRECISIONS:
                with contextlib.suppress(NasExtError):
                    precisions.append(check_precision(precision, device))
            described.append(f"{device} ({name}): {', '.join(precisions)}")
    return described
