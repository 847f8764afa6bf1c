"""Example of a study: the difference between the smallest and the largest network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nas_core.studies import Measure, Study, StudyResult, Subject
from nas_core.studies.base import Bars


@dataclass(frozen=True, kw_only=True)
class EndsConfig:
    """Settings of the study; each field is an option of the command."""

    metric: str = "loss"
    """Compared metric, such as loss or accuracy."""


class Ends(Study):
    name = "ends"
    purpose = "Difference between the smallest and the largest network."
    about = "A metric of both with inherited weights. Near 0, there is nothing to search for."
    config = EndsConfig

    def run(self, subjects: Sequence[Subject], config: EndsConfig, folder: Path) -> StudyResult:
        rows = []
        for subject in subjects:
            space = subject.supernet.space
            ends = {"smallest": space.smallest(), "largest": space.largest()}
            values = {name: subject.supernet.evaluate(network)[config.metric] for name, network in ends.items()}
            rows.append({"supernet": subject.name, **values, "apart": values["smallest"] - values["largest"]})
        columns = [Measure("supernet", "supernet"), *(Measure(name, name, ".4f") for name in ("smallest", "largest"))]
        picture = Bars({row["supernet"]: {"apart": row["apart"]} for row in rows}, f"difference in {config.metric}")
        apart = [Measure("supernet", "supernet"), Measure("apart", "apart", ".4f")]
        return StudyResult(columns, rows, apart, rows, picture, (self.about,))


ENDS = Ends()
"""Register it in one program by ``nas_core.studies.STUDIES.register("ends", ENDS)``."""
