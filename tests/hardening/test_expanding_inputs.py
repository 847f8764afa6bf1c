"""Small files that would take gigabytes or hours are refused by what they declare."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nas_core.errors import DataError, NasExtError, SpaceError
from nas_core.files import MOST_OWN_TEXT, parse_json, parse_yaml, read_json, read_jsonl, read_yaml
from nas_core.latency import load_latency_model
from nas_core.predictor.files import read_records
from nas_core.report import architecture_picture
from nas_core.space import Architecture, load_space

ALIASES = "a: &a [x, x]\n" + "".join(
    f"{now}: &{now} [{', '.join([f'*{before}'] * 10)}]\n" for before, now in itertools.pairwise("abcdefghij")
)
TEXTS = {
    "repeated without end": (ALIASES, "once its aliases are followed"),
    "merged without end": (
        ALIASES.replace("[x, x]", "{x: 1}").replace("[*", "{<<: [*").replace("]\n", "]}\n"),
        "alias",
    ),
    "a part of itself": ("a: &a [*a]", "part of itself"),
    "deep": ("a: " + "[" * 3_000, "nested too deep"),
    "date": ("a: 2026-13-45", "month"),
    "number": ("a: !!int abc", "invalid literal"),
    "minutes": ("a: 1" + ":59" * 5000, "digits"),
    "half a character": ('a: "\\ud800"', "lone surrogate"),
    "object": ("a: !!python/object/apply:os.getcwd []", "constructor"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_yaml(name: str, tmp_path: Path) -> None:
    text, message = TEXTS[name]
    with pytest.raises(ValueError, match=message):
        parse_yaml(text)
    (tmp_path / "f.yml").write_text(text)
    with pytest.raises(DataError, match="not readable as YAML"):
        read_yaml(tmp_path / "f.yml")
    with pytest.raises(SpaceError, match="not readable as YAML"):
        load_space(tmp_path / "f.yml")


def test_a_long_text_from_others_is_refused_and_our_own_is_read(tmp_path: Path) -> None:
    path, text = tmp_path / "config.yaml", "format: x\n" + "# x\n" * 120_000
    path.write_text(text)
    with pytest.raises(ValueError, match="more than 400 kB of text"):
        parse_yaml(text)
    with pytest.raises(DataError, match=r"not readable as YAML \(more than 400 kB"):
        read_yaml(path)
    assert read_yaml(path, MOST_OWN_TEXT) == {"format": "x"}
    path.write_text("# x\n" * (MOST_OWN_TEXT // 4 + 1))
    with pytest.raises(SpaceError, match="more than 16777 kB"):
        load_space(path)


def test_yaml_that_is_used_as_it_was() -> None:
    text = "name: s\nhere: &a [1, 2.5, null, true]\nthere: *a\nwhen: 2026-01-02\nmore: {<<: {x: 1}, y: 'ä'}\n"
    found = parse_yaml(text)
    assert found["here"] == found["there"] == [1, 2.5, None, True]
    assert found["more"] == {"x": 1, "y": "ä"} and parse_yaml("") is None


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"a": "\\udc80"}', f'{{"a": {"9" * 400}}}', f'{{"a": -{"9" * 9999}}}']
)
def test_json(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nested too deep|lone surrogate|digits"):
        parse_json(text)
    (tmp_path / "f").write_text(text + "\n{}\n")
    for read in (read_json, read_jsonl):
        with pytest.raises(DataError, match="JSON"):
            read(tmp_path / "f")
    assert parse_json('["\\ud83d\\ude00", "\\\\ud800", ' + "9" * 300 + "]") == ["😀", "\\ud800", int("9" * 300)]


def test_pipes_and_folders(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (read_json, read_jsonl, read_yaml, load_space):
        with pytest.raises(DataError, match="is a pipe"):
            read(tmp_path / "pipe")
        with pytest.raises(NasExtError):
            read(tmp_path)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("{d: [1000000], f: {options: [1, 2], per: d}}", "1000000 layers"),
        ("{d: [900], f: {options: " + str([*range(2000)]) + ", per: d}}", "options of all layers"),
        ("{f: " + str([*range(32768)]) + "}", "32768 options"),
        ("{1: [1], a: [2]}\n3: x\nz: 2", "key 3"),
        ("{a: {options: [1], 3: 4, z: 5}}", "key 3"),
        ("{a: [1]}\nfixed: {1: 2}", "'fixed'"),
    ],
)
def test_spaces(choices: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "s.yml").write_text(f"choices: {choices}\n")
    with pytest.raises(SpaceError, match=message):
        load_space(tmp_path / "s.yml")


def test_arrays_of_a_latency_model(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez_compressed(path, header=np.array("{}"), weights=np.zeros(2**28, np.uint8))
    assert path.stat().st_size < 2**20
    with pytest.raises(DataError, match=r"its arrays declare \d+ bytes"):
        load_latency_model(path)


def test_records_with_too_many_nodes(tmp_path: Path) -> None:
    graph = {"ops": [0] * 20_000, "edges": [[node, node + 1] for node in range(19_999)]}
    (tmp_path / "r.jsonl").write_text(json.dumps({"graph": graph}))
    with pytest.raises(DataError, match="20000 nodes"):
        read_records(tmp_path / "r.jsonl")
    graph = {"ops": [0] * 4_000, "edges": [[node, node + 1] for node in range(3_999)]}  # as large networks have
    (tmp_path / "r.jsonl").write_text(json.dumps({"graph": graph}))
    assert len(read_records(tmp_path / "r.jsonl").graphs) == 1


@pytest.mark.parametrize(
    ("genes", "message"),
    [
        ({"x.a": [1] * 1000}, "too many for one picture"),
        ({f"x.g{number}": [1, 2] for number in range(300)}, "too many for one picture"),
        ({"x.a": ["a", 1]}, "mixes numbers and names"),
        ({"x.a": [10**200, 1]}, "beyond 1e"),
        ({"x.a": [float("nan")]}, "beyond 1e"),
    ],
)
def test_pictures(genes: dict[str, Any], message: str) -> None:
    with pytest.raises(NasExtError, match=message):
        architecture_picture({"a": Architecture(genes)})


def test_names_in_pictures_are_no_formulas() -> None:
    name = "$\\foo{$"
    made = architecture_picture({name: Architecture({f"{name}.{name}": [name, name], f"{name}.b": [1, 2]})})
    assert made.startswith(b"\x89PNG")


class TestOnnx:
    @pytest.fixture(autouse=True)
    def package(self) -> Iterator[None]:
        pytest.importorskip("onnx")
        yield

    def refused(self, message: str, nodes: list[Any], *, constants: dict[str, int] | None = None, **more: Any) -> None:
        import onnx
        from onnx import helper

        from nas_core.graph.onnx import read_onnx

        inputs = [helper.make_tensor_value_info("x", 1, more.pop("shape", [1, 3, 8, 8]))]
        outputs = [helper.make_tensor_value_info("y", 1, None)]
        known = [helper.make_tensor(name, 7, [], [value]) for name, value in (constants or {}).items()]
        graph = helper.make_graph(nodes, "g", inputs, outputs, initializer=known)
        versions = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
        model: onnx.ModelProto = helper.make_model(graph, opset_imports=versions, **more)
        if not message:
            assert len(read_onnx(model).graph) >= 2
            return
        with pytest.raises(NasExtError, match=message):
            read_onnx(model)

    def test_sizes_beyond_all_numbers(self) -> None:
        from onnx.helper import make_node

        self.refused("do not fit", [make_node("Relu", ["x"], ["y"])], shape=[2**62, 2**62, 8, 8])
