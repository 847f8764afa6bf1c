"""Metrics of supernets beside those of standalone networks: whether the two may be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nas_core.errors import DataError
from nas_core.space import Architecture
from nas_core.studies.base import Subject
from nas_core.studies.gap.runs import StandaloneRun


def check_examples(subjects: Sequence[Subject], runs: Sequence[StandaloneRun], where: Path) -> None:
    """Check that all were evaluated on the same, as far as hosts and results say.

    Args:
        where: the file that the results are from.

    Raises:
        DataError: they were not.
    """
    for subject in subjects:
        if own := subject.supernet.examples_key():
            other = [run for run in runs if run.examples not in ("", own)]
            if other:
                raise DataError(
                    f"{where}: {len(other)} of {len(runs)} standalone results are of another test set than"
                    f" {subject.path}; give the data, split and number of examples that they were evaluated on"
                )


def ask_for(metric: str, subjects: Sequence[Subject], architecture: Architecture) -> None:
    """Have supernets evaluate a metric, before hours of training.

    Raises:
        DataError: a supernet has none of this name.
    """
    for subject in subjects:
        subject.supernet.also_evaluate(metric)
        metric_of(subject.supernet.evaluate(architecture), metric, str(subject.path))


def metric_of(metrics: Mapping[str, float], name: str, whose: str) -> float:
    """One metric.

    Raises:
        DataError: there is none of this name.
    """
    if name not in metrics:
        raise DataError(f"{whose}: no metric {name!r}, there are {', '.join(metrics)}; give one of them with --metric")
    return float(metrics[name])


def named_with_unit(subject: Subject, metric: str) -> str:
    """A metric as tables call it, with the unit that the supernet says."""
    unit = subject.supernet.units.get(metric, "")
    return f"{metric} ({unit})" if unit else metric


def doubts(runs: Sequence[StandaloneRun]) -> list[str]:
    """Sentences about what nobody can check."""
    silent = sum(not run.examples for run in runs)
    if not silent:
        return []
    return [f"{silent} of {len(runs)} standalone results do not say what they were evaluated on; that is not checked."]
