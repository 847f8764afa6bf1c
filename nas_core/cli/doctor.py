"""``nas-ext doctor``: which hosts, accelerators and plug-ins are usable here, and how to get what is not.

By default the metadata and version files of the installed packages are read, which takes a second. With ``--import``
each package is imported as well, in a process of its own: a host or plug-in whose import raises, hangs or takes the
interpreter down is a finding to report, not an end of the report.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, distributions
from typing import Annotated, Any, NamedTuple

import typer

from nas_core import __version__
from nas_core.cli.requirements import installed_version, unmet_requirements
from nas_core.errors import MissingHostError, NasExtError, unknown_choice
from nas_core.machine import python_environment
from nas_core.optional import install_line
from nas_core.registry import first_line
from nas_core.torchvision_fix import cuda_mismatch, repair

_TIMEOUT_S = 120
_MARK = "nas-ext-probe:"
_GIB = 2**30
_NOT_STARTED = (
    "no nas_ext.pth in site-packages: fairseq needs --user-dir, torchvision is repaired only after our packages"
    " are imported; install nas-ext with pip"
)
_REPAIRED = "torchvision is a CUDA build beside a CPU torch: repaired on import"
_USES_TORCHVISION = ("timm", "nni", "naslib")


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
"""Packages that are of use on CUDA devices alone: name -> the distributions that bring it."""
GROUPS = {
    "nas_ext.accuracy_models": "nas_core.predictor:ACCURACY_MODELS",
    "nas_ext.attention_kinds": "nas_core.layers.attention:KINDS",
    "nas_ext.commands": "",
    "nas_ext.graph_readers": "nas_core.predictor:READERS",
    "nas_ext.hosts": "",
    "nas_ext.latency_models": "nas_core.latency:LATENCY_MODELS",
    "nas_ext.network_families": "",
    "nas_ext.network_kinds": "nas_core.models:KINDS",
    "nas_ext.proxies": "nas_core.proxies:PROXIES",
    "nas_ext.quickstarts": "nas_core.quickstart:QUICKSTARTS",
    "nas_ext.routers": "nas_core.layers:ROUTERS",
    "nas_ext.shared_searches": "",
    "nas_ext.space_formats": "",
    "nas_ext.strategies": "nas_core.search:STRATEGIES",
    "nas_ext.studies": "nas_core.studies:STUDIES",
}
"""Every group of entry points, and the registry that knows what a member has to be, where there is one."""


class PlugIn(NamedTuple):
    """One entry point of another distribution."""

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
        bool, typer.Option("--plug-ins", help="Look at what other distributions plug in alone, and import it.")
    ] = False,
) -> None:
    """Show which hosts, accelerators and plug-ins are usable, with versions and what to do about what is not."""
    findings = {"plug_ins": found_plug_ins()} if plug_ins else diagnose(imports)
    text = "\n".join(_plug_in_lines(findings["plug_ins"])) if plug_ins else findings_table(findings)
    typer.echo(json.dumps(findings, indent=2) if as_json else text)


def diagnose(imports: bool = False) -> dict[str, Any]:
    """Return the findings as plain types: ``nas_ext``, ``startup``, ``python``, ``platform``, ``torch``,
    ``torchaudio``, ``accelerators``, ``cuda_packages``, ``hosts`` and ``plug_ins``.

    ``torch``, ``torchaudio`` and each host have ``installed``, ``importable`` (None: not tried), ``version``,
    ``problems`` (lines) and ``install`` (the shell line; None where there is no problem); hosts that import torchvision
    have ``torchvision_fix`` (whether its import has to be repaired). ``startup`` is whether every Python of this
    environment starts with :mod:`nas_core.startup`.

    Args:
        imports: import each host and plug-in. Otherwise only torch is imported, and only where it was not built for
            the CPU alone: it knows the accelerators.
    """
    core = unmet_requirements("nas-ext")
    for_cpu = (installed_version("torch") or "").endswith("+cpu")
    torch = _examine(Host("torch", ("torch",), ("torch",)), "pip install nas-ext", core, imports or not for_cpu)
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
        "torchaudio": _examine(
            Host("torchaudio", ("torchaudio",), ("torchaudio",)),
            "pip uninstall torchaudio  # only fairseq's speech tasks need it",
            audio,
            imports,
        ),
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
    """Examine a package whose dependencies have these problems."""
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


def installed_plug_ins() -> list[PlugIn]:
    """Return the entry points of other distributions in groups named as ours, by group and name; import nothing."""
    return sorted(
        {
            PlugIn(entry.group, entry.name, entry.value, one.metadata["Name"], one.version)
            for one in distributions()
            if one.metadata["Name"] and one.metadata["Name"].lower().replace("_", "-") != "nas-ext"
            for entry in one.entry_points
            if entry.group.startswith("nas_ext.")
        }
    )


def found_plug_ins(imports: bool = True) -> list[dict[str, Any]]:
    """Return plug-ins as plain types, with ``usable`` and ``error``, the line that says why one is not; without
    ``imports``, ``usable`` is None."""
    plug_ins = installed_plug_ins()
    if not imports:
        return [{**one._asdict(), "usable": None, "error": None} for one in plug_ins]
    errors = [answer.get("error") for answer in probe("check_plug_in", [one[:3] for one in plug_ins])]
    told = zip(plug_ins, errors, strict=True)
    return [{**one._asdict(), "usable": error is None, "error": error} for one, error in told]


# -- in processes of their own -----------------------------------------------------------------------------------------


def probe(function: str, items: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Call a function of this module on each item in a fresh interpreter, and return its answers, or ``error`` in one
    line. After an item that ends the interpreter, or hangs, another one goes on."""
    answers: list[dict[str, Any]] = []
    while len(answers) < len(items):
        code = f"from nas_core.cli.doctor import answer; answer({function!r}, {list(items[len(answers) :])!r})"
        output: bytes | None = b""
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
        except OSError as error:
            ended = f"cannot start {sys.executable}: {error}"
        lines = (output or b"").decode("utf-8", "replace").splitlines()
        answers += [json.loads(line.removeprefix(_MARK)) for line in lines if line.startswith(_MARK)]
        if len(answers) < len(items):
            answers.append({"error": ended})
    return answers


def answer(function: str, items: Sequence[Sequence[str]]) -> None:
    """Print a marked line of JSON for each item; run in a process of its own."""
    for item in items:
        try:
            found = globals()[function](*item)
        except NasExtError as error:
            found = {"error": str(error)}
        except BaseException as error:  # some packages leave by sys.exit
            found = {"error": f"does not import: {first_line(error)}"}
        print(f"\n{_MARK}{json.dumps(found)}", flush=True)


def import_host(*modules: str) -> dict[str, Any]:
    """Import the modules; return the version of the first, and of torch the accelerators."""
    if modules[0] in _USES_TORCHVISION:
        repair()
    first, *_ = map(importlib.import_module, modules)
    return {
        **({"version": str(first.__version__)} if hasattr(first, "__version__") else {}),
        **({"accelerators": _accelerators()} if modules[0] == "torch" else {}),
    }


def check_plug_in(group: str, name: str, target: str) -> dict[str, Any]:
    """Import a plug-in, and return why it cannot be used, as far as that is not raised."""
    if group not in GROUPS:
        raise unknown_choice("group of entry points", group, GROUPS)
    if GROUPS[group]:
        module, _, attribute = GROUPS[group].partition(":")
        getattr(importlib.import_module(module), attribute).get(name)
        return {}
    if group == "nas_ext.network_families":
        from nas_core.latency.by_graph.families.registry import CORE, offered_families, register_all

        offered = offered_families(EntryPoint(name, target, group))  # alone: another one may end the interpreter
        if isinstance(offered, MissingHostError):
            raise offered
        register_all({family.name: family for family in CORE}, offered, target)
        return {}
    member = EntryPoint(name, target, group).load()
    if group == "nas_ext.hosts":
        from nas_core.supernet import Host as SupernetHost

        if not isinstance(member, SupernetHost):
            return {"error": f"an object of {type(member).__name__}; expected one with name, recognises and open"}
    return {}


def _accelerators() -> list[dict[str, Any]]:
    """Return the devices torch can compute on beside the CPU; one that fails a first addition is not listed."""
    import torch

    from nas_core.precision import PRECISIONS, check_precision

    found: list[dict[str, Any]] = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found.append(
            {
                "kind": "cuda",
                "name": properties.name,
                "device": f"cuda:{index}",
                "memory_gib": round(properties.total_memory / _GIB, 1),
                "capability": f"{properties.major}.{properties.minor}",
            }
        )
    if torch.backends.mps.is_available():
        found.append({"kind": "mps", "name": platform.processor() or "Apple", "device": "mps"})
    found = [one for one in found if _adds(one["device"])]
    for one in found:
        one["precisions"] = []
        for precision in PRECISIONS:
            with contextlib.suppress(NasExtError):
                one["precisions"].append(check_precision(precision, one["device"]))
    return found


def _adds(device: str) -> bool:
    import torch

    try:
        return float(torch.ones(2, device=device).sum()) == 2.0
    except RuntimeError:
        return False


# -- the table ---------------------------------------------------------------------------------------------------------


def findings_table(findings: Mapping[str, Any]) -> str:
    """Return the findings as people read them."""
    return "\n".join(_lines(findings))


def _lines(findings: Mapping[str, Any]) -> Iterator[str]:
    yield f"{'nas-ext':<12} {findings['nas_ext']}"
    if not findings.get("startup", True):
        yield f"{'':<12} -> {_NOT_STARTED}"
    yield f"{'python':<12} {findings['python']} on {findings['platform']}"
    for device in findings["accelerators"]:
        told = device["name"]
        if device["kind"] == "cuda":
            told += f", {device['memory_gib']:g} GiB, compute capability {device['capability']}"
        yield f"{'accelerator':<12} {device['device']} ({told}): {', '.join(device['precisions'])}"
    if not findings["accelerators"]:
        yield f"{'accelerator':<12} none: the CPU is used"
    elif any(device["kind"] == "cuda" for device in findings["accelerators"]):
        packages = (f"{name} {version or 'not installed'}" for name, version in findings["cuda_packages"].items())
        yield f"{'for CUDA':<12} {', '.join(packages)}"
    named = {"torch": findings["torch"], "torchaudio": findings["torchaudio"], **findings["hosts"]}
    if not findings["torchaudio"]["problems"]:  # nothing of ours needs it
        del named["torchaudio"]
    for name, finding in named.items():
        repaired = [_REPAIRED] if finding.get("torchvision_fix") else []
        version = finding["version"] or "(version unknown)"
        said = ", ".join([version, *finding["problems"], *repaired]) if finding["installed"] else "not installed"
        yield f"{name:<12} {said}"
        if finding["install"]:
            yield f"{'':<12} -> {finding['install']}"
    yield from _plug_in_lines(findings["plug_ins"])
    if any(one["importable"] is None for one in (findings["torch"], *findings["hosts"].values())):
        yield f"{'imports':<12} not tried; nas-ext doctor --import imports each host and plug-in"


def _plug_in_lines(plug_ins: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not plug_ins:
        yield f"{'plug-ins':<12} none of other distributions"
    for one in plug_ins:
        state = {True: ": usable", False: ": not usable", None: ""}[one["usable"]]
        group = one["group"].removeprefix("nas_ext.")
        yield f"{'plug-in':<12} {group}: {one['name']}, of {one['distribution']} {one['version']}{state}"
        if one["error"]:
            yield f"{'':<12} -> {one['error']}"
