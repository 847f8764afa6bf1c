"""``nas-ext doctor``: usable hosts, accelerators and plug-ins, and how to install missing ones.

It reads metadata and version files, in about a second. ``--import`` also imports each package in its own process.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import typer
from packaging.requirements import InvalidRequirement, Requirement

from nas_core import __version__
from nas_core.adapters import Adapter
from nas_core.errors import NasExtError, unknown_choice
from nas_core.machine import python_environment
from nas_core.optional import install_line
from nas_core.registry import first_line, import_object
from nas_core.torchvision_fix import cuda_mismatch, repair

_TIMEOUT_S = 120
_MARK = "nas-ext-probe:"
_GIB = 2**30
_NOT_STARTED = (
    "no nas_ext.pth in site-packages: fairseq needs --user-dir, torchvision is repaired only after our packages"
    " are imported; install nas-ext with pip"
)
_REPAIRED = "torchvision is a CUDA build next to a CPU torch: repaired on import"
_USES_TORCHVISION = ("timm", "nni", "naslib")
_NOT_NEEDED = "torchaudio"
"""Dependency of fairseq's speech tasks only; ``tools/setup.sh`` may remove it"""


class Host(NamedTuple):
    """An optional package."""

    name: str
    distributions: tuple[str, ...]
    modules: tuple[str, ...]
    """Modules that must be importable for a usable host"""


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
"""Package for CUDA devices only -> its distributions"""
GROUPS = {
    "nas_ext.accuracy_models": "nas_core.predictor:ACCURACY_MODELS",
    "nas_ext.attention_kinds": "nas_core.layers.attention:KINDS",
    "nas_ext.graph_readers": "nas_core.predictor:READERS",
    "nas_ext.hosts": "nas_core.adapters:ADAPTERS",
    "nas_ext.latency_models": "nas_core.latency:LATENCY_MODELS",
    "nas_ext.network_kinds": "nas_core.models:KINDS",
    "nas_ext.strategies": "nas_core.search:STRATEGIES",
}
"""Entry-point group -> its registry"""


class PlugIn(NamedTuple):
    """An entry point of another distribution."""

    group: str
    name: str
    target: str
    distribution: str
    version: str


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    imports: Annotated[
        bool, typer.Option("--import", help="Import each host and plug-in too, each in a process of its own.")
    ] = False,
    plug_ins: Annotated[
        bool, typer.Option("--plug-ins", help="Look only at plug-ins of other distributions, and import them.")
    ] = False,
) -> None:
    """Show which hosts, accelerators and plug-ins are usable, with versions and how to install what is missing."""
    findings = {"plug_ins": found_plug_ins()} if plug_ins else diagnose(imports)
    text = "\n".join(_plug_in_lines(findings["plug_ins"])) if plug_ins else findings_table(findings)
    typer.echo(json.dumps(findings, indent=2) if as_json else text)


def diagnose(imports: bool = False) -> dict[str, Any]:
    """Return the findings as plain types.

    ``torch``, ``torchaudio`` and each host have ``installed``, ``importable`` (None: not tried), ``version``,
    ``problems`` (lines) and ``install`` (shell line or None), some ``torchvision_fix``.

    Args:
        imports: import each host and plug-in; otherwise at most torch is imported.
    """
    core = unmet_requirements("nas-ext")
    for_cpu = (installed_version("torch") or "").endswith("+cpu")
    torch = _examine(Host("torch", ("torch",), ("torch",)), "pip install nas-ext", core, imports or not for_cpu)
    audio = unmet_requirements("torchaudio")
    if cuda_mismatch("torchaudio"):
        audio.append("a CUDA build next to a CPU torch: it cannot be imported, nor packages that use it (transformers)")
    remove = "pip uninstall torchaudio  # only fairseq's speech tasks need it"
    return {
        "nas_ext": __version__,
        "startup": _is_present("_nas_ext_start"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "accelerators": torch.pop("accelerators", []),
        "cuda_packages": {name: installed_version(*packages) for name, packages in CUDA_PACKAGES.items()},
        "torch": torch,
        "torchaudio": _examine(Host("torchaudio", ("torchaudio",), ("torchaudio",)), remove, audio, imports),
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
    installed = all(map(_is_present, host.modules))
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
        (answer,) = probe("import_host", [list(host.modules)])
        error = answer.pop("error", None)
        finding |= {"importable": error is None, "problems": [*([error] if error else []), *problems]}
        finding = {**answer, **finding, "version": finding["version"] or answer.get("version")}
    if not finding["problems"]:
        finding["install"] = None
    return finding


def _is_present(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def installed_version(*distributions: str) -> str | None:
    """Return the version of the first installed distribution, or None."""
    for name in distributions:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return None


def unmet_requirements(package: str) -> list[str]:
    """Return a line for each unmet requirement of a package (``nas-ext[timm]``) and its direct dependencies."""
    outer = Requirement(package)
    direct = list(_requirements(outer))
    unmet = []
    for name, requirement in [
        *((outer.name, requirement) for requirement in direct),
        *((dependency.name, inner) for dependency in direct for inner in _requirements(dependency)),
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


def installed_plug_ins() -> list[PlugIn]:
    """Return the ``nas_ext.*`` entry points of other distributions without importing them."""
    return sorted(
        {
            PlugIn(entry.group, entry.name, entry.value, distribution.metadata["Name"], distribution.version)
            for distribution in importlib.metadata.distributions()
            if (distribution.metadata["Name"] or "nas-ext").lower().replace("_", "-") != "nas-ext"
            for entry in distribution.entry_points
            if entry.group.startswith("nas_ext.")
        }
    )


def found_plug_ins(imports: bool = True) -> list[dict[str, Any]]:
    """Return plug-ins as plain types with ``usable`` (None without ``imports``) and ``error`` (one line)."""
    plug_ins = installed_plug_ins()
    if not imports:
        return [{**plug_in._asdict(), "usable": None, "error": None} for plug_in in plug_ins]
    errors = [answer.get("error") for answer in probe("check_plug_in", [plug_in[:3] for plug_in in plug_ins])]
    return [
        {**plug_in._asdict(), "usable": error is None, "error": error}
        for plug_in, error in zip(plug_ins, errors, strict=True)
    ]


# -- in processes of their own -----------------------------------------------------------------------------------------


def probe(function: str, items: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Call a function of this module on each item in new interpreters; a failure is an ``error`` of one line."""
    answers: list[dict[str, Any]] = []
    while len(answers) < len(items):
        code = f"from nas_core.cli.doctor import answer; answer({function!r}, {list(items[len(answers) :])!r})"
        output: bytes | None
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-c", code],
                env=python_environment(),
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
            output, ended = done.stdout, f"its import ended the interpreter (exit code {done.returncode})"
        except subprocess.TimeoutExpired as error:
            output, ended = error.stdout, f"its import did not end within {_TIMEOUT_S} s"
        lines = (output or b"").decode("utf-8", "replace").splitlines()
        answers += [json.loads(line.removeprefix(_MARK)) for line in lines if line.startswith(_MARK)]
        if len(answers) < len(items):
            answers.append({"error": ended})
    return answers


def answer(function: str, items: Sequence[Sequence[str]]) -> None:
    for item in items:
        try:
            finding = globals()[function](*item) or {}
        except NasExtError as error:
            finding = {"error": str(error)}
        except BaseException as error:  # some packages leave by sys.exit
            finding = {"error": f"does not import: {first_line(error)}"}
        print(f"\n{_MARK}{json.dumps(finding)}", flush=True)


def import_host(*modules: str) -> dict[str, Any]:
    """Import modules; return the version of the first, and torch's accelerators."""
    if modules[0] in _USES_TORCHVISION:
        repair()
    first, *_ = map(importlib.import_module, modules)
    return {
        **({"version": str(first.__version__)} if hasattr(first, "__version__") else {}),
        **({"accelerators": _accelerators()} if modules[0] == "torch" else {}),
    }


def check_plug_in(group: str, name: str, target: str) -> None:
    """Import a plug-in, and all parts of an adapter."""
    if group not in GROUPS:
        raise unknown_choice("group of entry points", group, GROUPS)
    member = import_object("registry", GROUPS[group]).get(name)
    if isinstance(member, Adapter):
        parts = [member.host, member.commands, member.network_families, member.space_format, member.shared_search]
        for part in filter(None, [*parts, *member.quickstarts.values()]):
            import_object(f"part of {name!r}", part)


def _accelerators() -> list[dict[str, Any]]:
    import torch

    from nas_core.precision import PRECISIONS, check_precision

    devices: list[dict[str, Any]] = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        devices.append(
            {
                "kind": "cuda",
                "name": properties.name,
                "device": f"cuda:{index}",
                "memory_gib": round(properties.total_memory / _GIB, 1),
                "capability": f"{properties.major}.{properties.minor}",
            }
        )
    if torch.backends.mps.is_available():
        devices.append({"kind": "mps", "name": platform.processor() or "Apple", "device": "mps"})
    devices = [device for device in devices if _adds(device["device"])]
    for device in devices:
        device["precisions"] = []
        for precision in PRECISIONS:
            with contextlib.suppress(NasExtError):
                device["precisions"].append(check_precision(precision, device["device"]))
    return devices


def _adds(device: str) -> bool:
    import torch

    try:
        return float(torch.ones(2, device=device).sum()) == 2.0
    except RuntimeError:
        return False


# -- the table ---------------------------------------------------------------------------------------------------------


def findings_table(findings: Mapping[str, Any]) -> str:
    return "\n".join(_lines(findings))


def _lines(findings: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'nas-ext':<12} {findings['nas_ext']}"
    if not findings.get("startup", True):
        yield f"{'':<12} -> {_NOT_STARTED}"
    yield f"{'python':<12} {findings['python']} on {findings['platform']}"
    for device in findings["accelerators"]:
        details = device["name"]
        if device["kind"] == "cuda":
            details += f", {device['memory_gib']:g} GiB, compute capability {device['capability']}"
        yield f"{'accelerator':<12} {device['device']} ({details}): {', '.join(device['precisions'])}"
    if not findings["accelerators"]:
        yield f"{'accelerator':<12} none: the CPU is used"
    elif any(device["kind"] == "cuda" for device in findings["accelerators"]):
        packages = (f"{name} {version or 'not installed'}" for name, version in findings["cuda_packages"].items())
        yield f"{'for CUDA':<12} {', '.join(packages)}"
    audio = {"torchaudio": findings["torchaudio"]} if findings["torchaudio"]["problems"] else {}
    for name, finding in {"torch": findings["torch"], **audio, **findings["hosts"]}.items():
        repaired = [_REPAIRED] if finding.get("torchvision_fix") else []
        state = ", ".join([finding["version"] or "(version unknown)", *finding["problems"], *repaired])
        yield f"{name:<12} {state if finding['installed'] else 'not installed'}"
        if finding["install"]:
            yield f"{'':<12} -> {finding['install']}"
    yield from _plug_in_lines(findings["plug_ins"])
    if any(finding["importable"] is None for finding in (findings["torch"], *findings["hosts"].values())):
        yield f"{'imports':<12} not tried; nas-ext doctor --import imports each host and plug-in"


def _plug_in_lines(plug_ins: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not plug_ins:
        yield f"{'plug-ins':<12} none of other distributions"
    for plug_in in plug_ins:
        state = {True: ": usable", False: ": not usable", None: ""}[plug_in["usable"]]
        member = f"{plug_in['group'].removeprefix('nas_ext.')}: {plug_in['name']}"
        yield f"{'plug-in':<12} {member}, of {plug_in['distribution']} {plug_in['version']}{state}"
        if plug_in["error"]:
            yield f"{'':<12} -> {plug_in['error']}"
