"""Example of a quickstart: a search for the smallest sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nas_core.adapters import Adapter
from nas_core.quickstart import Quickstart

PAGE = """# A search for the smallest sum

`python run.py` draws random sums of three prices and prints the smallest. `EVALUATIONS=5 python run.py` draws five.
"""
SCRIPT = """# Run: python run.py
import json, os, random

prices = json.load(open("prices.json"))
EVALUATIONS = int(os.environ.get("EVALUATIONS", "100"))
best = min(sum(random.choices(prices, k=3)) for _ in range(EVALUATIONS))
print(f"the smallest of {EVALUATIONS} sums is {best}")
"""


class SumsQuickstart(Quickstart):
    name = "sums"
    purpose = "find the smallest of many random sums"

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
