"""What other distributions plug in, and whether it can be used: a part of ``nas-ext doctor``.

All are imported in a process of their own. One that takes that process down, or hangs, is told so, and another process
goes on with those after it.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint, distributions
from typing import Any, NamedTuple

from nas_core.errors import MissingHostError, NasExtError, unknown_choice
from nas_core.machine import python_environment
from nas_core.registry import Registry, first_line

__all__ = ["GROUPS", "PlugIn", "found_plug_ins", "installed_plug_ins", "plug_ins_table", "probe_plug_ins"]

PREFIX = "nas_ext."
OURS = "nas-ext"
"""The distribution whose entry points are no plug-ins: doctor tells of its hosts by themselves."""
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
_MARK = "nas-ext-plug-in:"
_TIMEOUT_S = 120


class PlugIn(NamedTuple):
    """One entry point of another distribution."""

    group: str
    name: str
    target: str
    distribution: str
    version: str


def installed_plug_ins() -> list[PlugIn]:
    """What others offer in groups whose names begin as ours do, by group and name; nothing is imported."""
    found = {
        PlugIn(entry.group, entry.name, entry.value, one.metadata["Name"], one.version)
        for one in distributions()
        if one.metadata["Name"] and one.metadata["Name"].lower().replace("_", "-") != OURS
        for entry in one.entry_points
        if entry.group.startswith(PREFIX)
    }
    return sorted(found)


def found_plug_ins(imports: bool = True) -> list[dict[str, Any]]:
    """Plug-ins as plain types, with ``usable`` and ``error``, the one line that says why one is not; without
    ``imports``, ``usable`` is None."""
    plug_ins = installed_plug_ins()
    if not imports:
        return [{**one._asdict(), "usable": None, "error": None} for one in plug_ins]
    errors: list[str | None] = []
    while len(errors) < len(plug_ins):
        rest = [[one.group, one.name, one.target] for one in plug_ins[len(errors) :]]
        answers, ended = _probed(rest)
        errors += answers
        if len(answers) < len(rest):
            errors.append(ended)
    told = zip(plug_ins, errors, strict=True)
    return [{**one._asdict(), "usable": error is None, "error": error} for one, error in told]


def probe_plug_ins(wanted: Sequence[Sequence[str]]) -> None:
    """Print what is wrong with each (group, name, target), a marked line of JSON each; run in a process of its own."""
    for group, name, target in wanted:
        try:
            error = _problem(group, name, target)
        except NasExtError as found:
            error = str(found)
        except BaseException as found:  # what another distribution does at its import is not ours
            said = first_line(found) if isinstance(found, Exception) else type(found).__name__
            error = f"does not import: {said}"
        print(f"\n{_MARK}{json.dumps(error)}", flush=True)


def plug_ins_table(plug_ins: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines that people read."""
    if not plug_ins:
        return [f"{'plug-ins':<12} none of other distributions"]
    lines = []
    for one in plug_ins:
        state = {True: ": usable", False: ": not usable", None: ""}[one["usable"]]
        group = one["group"].removeprefix(PREFIX)
        lines.append(f"{'plug-in':<12} {group}: {one['name']}, of {one['distribution']} {one['version']}{state}")
        if one["error"]:
            lines.append(f"{'':<12} -> {one['error']}")
    return lines


def _problem(group: str, name: str, target: str) -> str | None:
    """Why a plug-in cannot be used, as far as it is not raised."""
    if group not in GROUPS:
        raise unknown_choice("group of entry points", group, GROUPS)
    if GROUPS[group]:
        module, _, attribute = GROUPS[group].partition(":")
        registry: Registry[Any] = getattr(importlib.import_module(module), attribute)
        registry.get(name)
        return None
    if group == "nas_ext.network_families":
        from nas_core.latency.by_graph.families.registry import CORE, offered_families, register_all

        offered = offered_families(EntryPoint(name, target, group))  # alone: another one may end the interpreter
        if isinstance(offered, MissingHostError):
            return str(offered)
        register_all({family.name: family for family in CORE}, offered, target)
        return None
    member = EntryPoint(name, target, group).load()
    if group == "nas_ext.hosts":
        from nas_core.supernet import Host

        if not isinstance(member, Host):
            return f"an object of {type(member).__name__}; expected one with name, recognises and open"
    return None


def _probed(wanted: Sequence[Sequence[str]]) -> tuple[list[str | None], str]:
    """What a fresh interpreter says of each until it ends, and how it ended."""
    code = f"from nas_core.cli.plug_ins import probe_plug_ins; probe_plug_ins({wanted!r})"
    output: str | bytes | None
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
        output, ended = b"", f"cannot start {sys.executable}: {error}"
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output or ""
    answers = [json.loads(line.removeprefix(_MARK)) for line in text.splitlines() if line.startswith(_MARK)]
    return answers, ended
