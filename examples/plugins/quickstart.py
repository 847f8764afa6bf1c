"""Example of a quickstart: a search over a formula, with its data and its page in the code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nas_core.adapters import Adapter
from nas_core.quickstart import Quickstart

PAGE = """# A search over a formula

`python run.py` searches the fastest of many sums. A quick look: `EVALUATIONS=5 python run.py`.
"""
SCRIPT = """# Run: python run.py
import json, os, random

prices = json.load(open("prices.json"))
EVALUATIONS = int(os.environ.get("EVALUATIONS", "100"))
best = min(sum(random.choices(prices, k=3)) for _ in range(EVALUATIONS))
print(f"the least of {EVALUATIONS} sums is {best}")
"""


class SumsQuickstart(Quickstart):
    name = "sums"
    purpose = "search the least of many sums"

    def pages(self) -> Mapping[str, str]:
        return {"README.md": PAGE, "run.py": SCRIPT}

    def data(self) -> Mapping[str, str | bytes]:
        return {"prices.json": "[3, 1, 4, 1, 5]\n"}


SUMS = SumsQuickstart()


class SumsAdapter(Adapter):
    """Offered as ``sums = "package.module:ADAPTER"`` in the entry-point group ``nas_ext.hosts``."""

    name = "sums"
    quickstarts: ClassVar[Mapping[str, str]] = {"sums": f"{__name__}:SUMS"}


ADAPTER = SumsAdapter()
