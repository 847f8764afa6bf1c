"""A supernet whose trainer writes files instead of training."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas_core.layers import MoSConfig
from nas_core.space import Architecture
from tests.studies.supernets import SPACE
from tests.toys import ToySupernet


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


class Trainer(ToySupernet):
    """The loss of a network from scratch is 9 minus its width, or what the setting ``loss`` says; inherited, it is one
    more. Each further update takes a hundredth off."""

    experts: Any = None
    path: Path
    """Return the path, if known."""

    def __init__(self, fails: int = 0, key: str = "valid", data: str = "images") -> None:
        super().__init__(SPACE, lambda architecture: {"loss": 10.0 - architecture.number("width")})
        self.fails, self.key, self.data, self.trained = fails, key, data, 0
        self.experts = MoSConfig(kind="layer")

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

    def standalone_updates(self, folder: Path) -> int | None:
        return 400

    def further_command(
        self, architecture: Architecture, folder: Path, changes: Mapping[str, str], every: int, most: int
    ) -> list[str]:
        """Keep a file after every few updates, and one at 7; ``ends`` in the settings is where it gives up."""
        self.trained += 1
        begin, last = 10 - architecture.number("width"), min(most, int(changes.get("ends", most)))
        kept = [7, *range(every, last + 1, every)]
        return python(f"for n in {kept}: open(f'{folder}/{{n}}.kept', 'w').write(str({begin} - n / 100))")

    def kept_networks(self, folder: Path) -> dict[int, Path]:
        return {int(path.stem): path for path in folder.glob("*.kept")}

    def evaluate_network(self, path: Path) -> dict[str, float]:
        return {"loss": float(path.read_text())}

    def supernet_command(self, folder: Path, experts: MoSConfig, changes: Mapping[str, str]) -> list[str]:
        self.trained += 1
        if experts.experts == self.fails:
            return [sys.executable, "-c", "raise SystemExit('Error: out of memory')"]
        return python(f"open({str(folder / 'experts')!r}, 'w').write('{experts.experts * experts.router_layers}')")

    def trained_supernet(self, folder: Path) -> Trainer:
        """Its losses are less by a tenth of its experts times the layers of its routers."""
        better = int((folder / "experts").read_text()) / 10
        supernet = Trainer(key=self.key)
        supernet.path = folder / "last.pt"
        supernet.score = lambda architecture: {"loss": 10.0 - architecture.number("width") - better}
        return supernet
