"""The program that trains the cells of the quickstart of predictors."""

from __future__ import annotations

from nas_core.files.journal import read_jsonl
from nas_core.graph import nasbench201_string
from nas_core.quickstart import QUICKSTARTS
from tools.quickstart_cells import RESULT, network


def test_it_goes_on_with_the_file_that_the_quickstart_brings_along() -> None:
    assert RESULT.read_bytes() == QUICKSTARTS.get("predictor").contents()["cells.jsonl"]


def test_its_networks_are_those_of_the_file() -> None:
    """By their parameters: 3x3 convolutions alone have the most, cells without convolutions the fewest."""
    parameters = {record["architecture"]: record["parameters"] for record in read_jsonl(RESULT)}
    codes = {nasbench201_string([number // 5**place % 5 for place in range(6)]): number for number in range(5**6)}
    for cell in sorted(parameters, key=parameters.__getitem__)[:: len(parameters) // 3]:
        operations = [codes[cell] // 5**place % 5 for place in range(6)]
        assert sum(parameter.numel() for parameter in network(operations).parameters()) == parameters[cell]
