"""What a search was: where it lies, when, where and how long it ran, and with what."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from nas_core.files import real_path
from nas_core.report.search.run import SearchRun, limit_label
from nas_core.search.engine import GIVEN

__all__ = ["duration", "facts_of", "fingerprints_of", "machine_of", "started"]

_FACTS = ("checkpoint", "latency_model", "device", "device_name")
_SETTINGS = {"data": "data", "valid_subset": "validation split", "valid_sentences": "of it, evaluated"}


def facts_of(run: SearchRun) -> dict[str, Any]:
    """For people, in the order in which they ask."""
    failed = sum(run.value(evaluation["metrics"]) is None for evaluation in run.evaluations)
    facts: dict[str, Any] = {
        "run folder": str(real_path(run.folder)),
        "started": started(run),
        "duration": duration(run),
        "machine": machine_of(run),
        "checkpoint": run.notes.get("checkpoint") or run.settings.get("checkpoint"),
        "latency model": run.notes.get("latency_model"),
        "device": ", ".join(str(run.notes[name]) for name in ("device", "device_name") if run.notes.get(name)),
        "precision": run.settings.get("precision"),
        **{shown: run.settings.get(name) for name, shown in _SETTINGS.items()},
        "objective": run.objective,
        "evaluations": f"{len(run.evaluations)} ({failed} failed)" if failed else len(run.evaluations),
        "searches": ", ".join(map(limit_label, (name for name in run.history() if name != GIVEN))),
        "by": ", ".join(run.strategies()),
    }
    return {name: value for name, value in facts.items() if value not in (None, "", "None")}


def fingerprints_of(run: SearchRun) -> dict[str, Any]:
    """For machines, and for those who compare: fingerprints, versions and whatever else the run says of itself."""
    shown = {*_SETTINGS, "checkpoint", "precision"}
    settings = {name: value for name, value in run.settings.items() if name not in shown}
    notes = {name: value for name, value in run.notes.items() if name not in _FACTS}
    plain = {name: value for name, value in {**settings, **notes}.items() if isinstance(value, str | int | float)}
    return {name.replace("_sha256", " (SHA-256)"): value for name, value in plain.items()}


def started(run: SearchRun) -> str:
    """The day and the minute at which it first evaluated, where that is known."""
    if not run.sessions:
        return ""
    try:
        when = datetime.fromisoformat(run.sessions[0]["started"])
    except ValueError:
        return ""
    return when.strftime("%Y-%m-%d %H:%M %Z").strip()


def duration(run: SearchRun) -> str:
    """All its runs together."""
    if not run.sessions:
        return ""
    runs = f" in {len(run.sessions)} runs" if len(run.sessions) > 1 else ""
    return _time(sum(session["seconds"] for session in run.sessions)) + runs


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def machine_of(run: SearchRun) -> str:
    """The machines it ran on, each once."""
    told = []
    for session in run.sessions:
        machine = session["machine"]
        parts = [machine.get("host"), machine.get("cpu"), f"{machine['cores']} cores" if machine.get("cores") else None]
        told.append(", ".join(str(part) for part in parts if part))
    return "; ".join(dict.fromkeys(told))
