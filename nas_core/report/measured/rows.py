"""What a latency page shows of one network: its costs, what was measured and predicted, its settings or its genes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nas_core.report.measured.collection import Collection, MeasuredNetwork
from nas_core.report.measured.model_of import AgainstModel
from nas_core.report.points import ARCHITECTURE_FILE, Field, Points, Row

_SHORT = 300
"""Characters of a setting that are shown."""


def points_of(collection: Collection, against: AgainstModel | None = None) -> Points:
    """A row for each network of a collection, in its order."""
    alone = len(set(collection.families)) == 1
    found: dict[Field, list[Any]] = {}
    if not alone:
        found[Field("family")] = [one.family for one in collection.networks]
    found[Field("measured", "ms", 3)] = [one.latency_ms for one in collection.networks]
    found[Field("standard error", "%", 2)] = [one.error_percent for one in collection.networks]
    if against is not None:
        found |= _predicted_fields(collection, against)
    found[Field("FLOPs", "G", 3)] = [one.flops_g for one in collection.networks]
    found[Field("parameters", "M", 3)] = [one.params_m for one in collection.networks]
    found[Field("operators", "", 0)] = [None if one.nodes is None else float(one.nodes) for one in collection.networks]
    fields = {field: values for field, values in found.items() if any(value is not None for value in values)}
    rows = [
        Row(
            one.name,
            [values[place] for values in fields.values()],
            about=_about(against, place),
            facts=_facts(one),
            genes={} if one.architecture is None else one.architecture.to_dict(),
        )
        for place, one in enumerate(collection.networks)
    ]
    if collection.space is None:
        return Points(list(fields), rows, "network")
    return Points(list(fields), rows, "architecture", _searched(collection), file=ARCHITECTURE_FILE)


def _predicted_fields(collection: Collection, against: AgainstModel) -> dict[Field, list[Any]]:
    judged = against.judged
    place = {network: index for index, network in enumerate(against.places)}
    at = [place.get(index) for index in range(len(collection.networks))]
    given = [
        (Field("predicted", "ms", 3), judged.predicted, True),
        (Field("spread", "ms", 3), judged.spread, judged.spreads),
        (Field("off by", "%", 1), judged.percent, True),
    ]
    return {
        field: [None if index is None else float(values[index]) for index in at]
        for field, values, wanted in given
        if wanted
    }


def _about(against: AgainstModel | None, network: int) -> list[str]:
    if against is None or against.judged.learned is None:
        return []
    place = against.place_of(network)
    if place is None:
        return ["Its ONNX file cannot be read: it has no prediction."]
    return ["The model has learned it." if against.judged.learned[place] else "The model has not learned it."]


def _facts(one: MeasuredNetwork) -> dict[str, str]:
    facts: dict[str, str] = {}
    if one.raw_ms is not None:
        facts["as measured, with drift"] = f"{one.raw_ms:.3f} ms"
    facts["reference around it"] = f"{one.reference_ms:.3f} ms"
    facts |= {f"of it, {name}": f"{value:.3f} ms" for name, value in one.parts_ms.items()}
    if one.again_percent is not None:
        facts["measured again"] = f"{one.again_percent:+.1f} %"
    return facts | {name: _text(value) for name, value in one.settings.items()}


def _text(value: Any) -> str:
    """A setting as text: lists without quotes, long ones cut."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        parts = [_text(part) for part in value]
        text = "; ".join(parts) if any(" " in part or "/" in part for part in parts) else "/".join(parts)
    else:
        text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= _SHORT else f"{text[:_SHORT]} ..."


def _searched(collection: Collection) -> list[str]:
    """Genes that the space lets choose."""
    assert collection.space is not None
    return [choice.name for choice in collection.space.choices if any(len(set(o)) > 1 for o in choice.options)]
