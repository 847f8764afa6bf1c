"""A supernet whose trainer writes files instead of training."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from nas_core.space import Architecture, Choice, SearchSpace
from tests.toys import ToySupernet

SPACE = SearchSpace("line", [Choice.make("width", (1, 2, 3))])


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


class Trainer(ToySupernet):
    """The loss of a network from scratch is 9 minus its width, or what the setting ``loss`` says; inherited, it is one
    more."""

    def __init__(self, fails: int = 0, key: str = "valid", data: str = "images") -> None:
        super().__init__(SPACE, lambda architecture: {"loss": 10.0 - architecture.number("width")})
        self.fails, self.key, self.data, self.trained = fails, key, data, 0

    def examples_key(self) -> str:
        return self.key

    def training_data(self) -> dict[str, str]:
        return {"data": self.data}

    def standalone_command(self, architecture: Architecture, folder: Path, changes: Mapping[str, str]) -> list[str]:
        self.trained += 1
        width = architecture.number("width")
        if width == self.fails:
            return [sys.executable, "-c", "raise SystemExit('Error: out of memory')"]
        loss = changes.get("loss", str(9 - width))
        return python(f"open({str(folder / 'loss')!r}, 'w').write({loss!r})")

    def evaluate_standalone(self, folder: Path) -> tuple[dict[str, float], str]:
        return {"loss": float((folder / "loss").read_text())}, self.key
