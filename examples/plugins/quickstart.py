"""A quickstart of a third party: a search over a formula, with its data and its page in the code."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Offered as ``sums = "package.module:SUMS"`` in the entry-point group ``nas_ext.quickstarts``."""

    name = "sums"
    purpose = "search the least of many sums"

    def pages(self) -> Mapping[str, str]:
        return {"README.md": PAGE, "run.py": SCRIPT}

    def data(self) -> Mapping[str, str | bytes]:
        return {"prices.json": "[3, 1, 4, 1, 5]\n"}


SUMS = SumsQuickstart()
