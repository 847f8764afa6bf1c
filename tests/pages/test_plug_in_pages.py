"""Pages that show an example of a plug-in show it as it is."""

from __future__ import annotations

import re

import pytest

from tests.toys import ROOT

SHOWN = {
    "attention": ["attention"],
    "host": ["host"],
    "latency-family": ["latency_by_genes", "latency_by_graph", "network_family"],
    "network-kind": ["network_kind"],
    "predictor": ["accuracy_model", "graph_reader"],
    "space": ["gene"],
    "strategy": ["strategy"],
}


@pytest.mark.parametrize("page", SHOWN)
def test_the_code_is_that_of_the_example(page: str) -> None:
    text = (ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for name in SHOWN[page]:
        assert (ROOT / "examples" / "plugins" / f"{name}.py").read_text(encoding="utf-8") in blocks, name


def test_every_example_is_on_a_page() -> None:
    examples = {file.stem for file in (ROOT / "examples" / "plugins").glob("*.py")} - {"__init__"}
    assert examples == {name for names in SHOWN.values() for name in names}
