"""Records of the finished steps of an experiment."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from examples.papers.experiment import Experiment, Step
from nas_core.errors import ConfigError
from nas_core.files.reading import read_json
from nas_core.files.writing import write_json

_FOLDERS = ("OUT", "USER_DIR", "HERE")
"""Variables that may differ when a step is checked, since folders may have moved."""


class Stamps:
    """Records of finished steps, JSON files in the folder ``OUT/steps``."""

    def __init__(self, experiment: Experiment, values: Mapping[str, str]) -> None:
        self._experiment, self._values = experiment, values
        self._out = Path(values["OUT"])

    def makes(self, step: Step) -> Path:
        return Path(self._experiment.command(Step(step.name, "", (step.makes,), ""), self._values)[0])

    def finished_note(self, step: Step, command: Sequence[str]) -> str | None:
        """Return None if a step must be run, and otherwise a note on the extra options with which it was run.

        Raises:
            ConfigError: the step was run with another command.
        """
        # A step is done if its file exists and no earlier step was run after it.
        stamp = self._read(step)
        if stamp is None or not self.makes(step).exists():
            return None
        previous_command, current_command = list(stamp["command"]), self._make_portable(command)
        if previous_command != current_command:
            output = self.makes(step)
            if output.is_relative_to(self._out):
                output = self._out / output.relative_to(self._out).parts[0]
            raise ConfigError(
                f"step {step.name} was run with other settings"
                f" ({_describe_difference(previous_command, current_command)}), whose files it would reuse; give"
                f" another OUT=, or remove {output}"
            )
        for earlier in self._experiment.steps.values():
            if earlier.name == step.name:
                break
            earlier_stamp = None if earlier.optional else self._read(earlier)
            if earlier_stamp is not None and earlier_stamp["ended"] > stamp["ended"]:
                return None
        return f"with {shlex.join(stamp['extra'])}" if stamp["extra"] else ""

    def write(self, step: Step, command: Sequence[str], extra: Sequence[str]) -> None:
        content = {"command": self._make_portable(command), "extra": list(extra), "ended": time.time()}
        write_json(self._path(step), content)

    def _path(self, step: Step) -> Path:
        return self._out / "steps" / f"{step.name}.json"

    def _read(self, step: Step) -> dict[str, Any] | None:
        path = self._path(step)
        return read_json(path) if path.exists() else None

    def _make_portable(self, command: Sequence[str]) -> list[str]:
        folders = [(name, self._values[name].rstrip("/")) for name in _FOLDERS]
        portable = []
        for word in command:
            for name, folder in folders:
                if word == folder or word.startswith(f"{folder}/"):
                    word = f"{{{name}}}{word[len(folder) :]}"
                    break
            portable.append(word)
        return portable


def _describe_difference(previous: Sequence[str], current: Sequence[str]) -> str:
    """Describe the difference between two commands."""
    changes = []
    for kind, i, i_end, j, j_end in SequenceMatcher(None, previous, current, autojunk=False).get_opcodes():
        if kind != "equal":
            value = not any(word.startswith("--") for word in (*previous[i:i_end][:1], *current[j:j_end][:1]))
            context = int(value and i > 0 and j > 0 and previous[i - 1].startswith("-"))
            old, new = shlex.join(previous[i - context : i_end]), shlex.join(current[j - context : j_end])
            changes.append(f"{old or 'nothing'}; now {new or 'nothing'}")
    return "; ".join(changes)
