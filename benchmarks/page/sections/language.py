"""Language models: what decoding costs far behind the beginning of a text."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.page.results import Results, middle_of
from benchmarks.page.section import Section
from benchmarks.page.words import count, fixed, table

__all__ = ["SECTIONS"]


def _positions(results: Results) -> Mapping[str, str]:
    content = results["decoding_length"]
    near, far = (str(position) for position in content["positions"])
    rows = content["layouts"]

    def row(name: str) -> list[str]:
        ms, kept, ratio = (rows[name][each] for each in ("step_ms", "state_mb", "ratio"))
        return [name, *(fixed(middle_of(ms[at])) for at in (near, far)), fixed(middle_of(ratio), 2),
                *(fixed(kept[at], 2) for at in (near, far))]  # fmt: skip

    return {
        "near": count(int(near)),
        "far": count(int(far)),
        "layers": count(content["layers"]),
        "width": count(content["width"]),
        "linear": fixed(middle_of(rows["all linear"]["ratio"]), 2),
        "half": fixed(middle_of(rows["every second linear"]["ratio"]), 1),
        "softmax": fixed(middle_of(rows["all softmax"]["ratio"]), 1),
        "limit": fixed(content["aim"]["at most"]),
        "table": table(
            ["attention", f"ms at {count(int(near))}", f"ms at {count(int(far))}", "ratio",
             f"MB kept at {count(int(near))}", f"MB kept at {count(int(far))}"],
            [row(name) for name in rows],
        ),
    }  # fmt: skip


POSITIONS = Section("Decoding by position", ("decoding_length",), _positions)
SECTIONS = (POSITIONS,)
