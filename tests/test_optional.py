"""Late imports: the message names feature, package and the line that installs it."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from nas_core.errors import MissingHostError
from nas_core.optional import install_line, require
from naslib_ext import compat


@pytest.fixture
def broken_package(tmp_path, monkeypatch):
    """Make a package whose import runs the given source."""

    def make(name, source):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)
        return name

    return make


def test_absent_package():
    with pytest.raises(MissingHostError) as caught:
        require("absent_host.nas", "searching with it", "nni")
    assert str(caught.value) == (
        "searching with it needs the package absent_host, which is not installed: run pip install 'nas-ext[nni]'"
    )
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_absent_dependency_of_a_present_package_is_the_one_named(broken_package):
    name = broken_package("host_without_its_friend", "import absent_friend.inner")
    with pytest.raises(MissingHostError, match=r"needs the package absent_friend, which is not installed"):
        require(name, "training", "nni")


def test_absent_part_of_a_present_package(broken_package):
    name = broken_package("host_of_another_version", "")
    with pytest.raises(MissingHostError, match=rf"needs {name}\.part, which this version of {name} does not have"):
        require(f"{name}.part", "training", "nni")


def test_package_that_raises_on_import(broken_package):
    name = broken_package("host_that_raises", "raise ValueError('mutable default\\nis not allowed')")
    with pytest.raises(MissingHostError) as caught:
        require(name, "training", "fairseq")
    message = str(caught.value)
    assert f"{name}, which is installed but cannot be imported (ValueError: mutable default is not allowed)" in message
    assert install_line("fairseq") in message
    assert isinstance(caught.value.__cause__, ValueError)


def test_the_extra_of_naslib_has_what_naslib_imports():
    """NASLib is a source tree: nobody else installs what it needs."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = {"fvcore": "fvcore", "networkx": "networkx", "sklearn": "scikit-learn", "PIL": "pillow"}
    needed |= {"scipy": "scipy", "tqdm": "tqdm", "yaml": "PyYAML", "xgboost": "xgboost"}
    named = {re.split(r"[<>=;\[ ]", text)[0] for text in (*project["dependencies"], *extras["naslib"])}
    assert {needed[module.partition(".")[0]] for module in compat.NEEDED} | {"xgboost"} <= named
    assert "naslib" in extras["all"][0]
