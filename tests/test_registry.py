import re
import zlib
from fractions import Fraction
from pathlib import Path

import pytest

from nas_core.errors import ConfigError, MissingHostError, UnknownChoiceError
from nas_core.registry import Registry
from tests.toys import plug_in

GROUP = "nas_ext.test_colours"
HALF = Fraction(1, 2)


class Named(Fraction):
    name = "grey"


GREY = Named(1, 2)


@pytest.fixture
def colours() -> Registry[object]:
    return Registry("colour", GROUP, {"pi": "math:pi", "broken": "math:no_such_name"})


def test_own_members_are_imported_when_asked_for(colours: Registry[object]):
    assert colours.get("pi") == pytest.approx(3.14159, abs=1e-5)
    assert colours.names() == ["pi", "broken"]
    assert dict(colours.items()).keys() == {"pi"}, "what does not import is left out"
    with pytest.raises(MissingHostError, match=r"colour 'broken' \(math:no_such_name\) cannot be imported"):
        colours.get("broken")


def test_an_unknown_name_lists_all(colours: Registry[object]):
    with pytest.raises(UnknownChoiceError, match=r"'pie': expected one of pi, broken. Did you mean 'pi'"):
        colours.get("pie")


def test_registration_is_idempotent_and_loud(colours: Registry[object]):
    assert colours.register("path", Path) is Path
    colours.register("path", Path)
    assert colours.get("path") is Path
    for name in ("path", "pi"):
        with pytest.raises(ConfigError, match=rf"colour '{name}' exists already"):
            colours.register(name, Registry)
    colours.unregister("path")
    assert "path" not in colours.names()


def test_two_distributions_with_one_name(colours: Registry[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plug_in(tmp_path, monkeypatch, GROUP, "pi", "math:e")
    with pytest.raises(ConfigError, match="colour 'pi' is defined by math:pi and math:e; uninstall one of them"):
        colours.get("pi")


def test_two_others_with_one_name_leave_the_rest(
    colours: Registry[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plug_in(tmp_path / "one", monkeypatch, GROUP, "grey", "math:e")
    plug_in(tmp_path / "two", monkeypatch, GROUP, "grey", "math:tau")
    (tmp_path / "two/plugged_grey-1.0.dist-info").rename(tmp_path / "two/another-1.0.dist-info")
    assert [name for name, _ in colours.items()] == ["pi"]
    with pytest.raises(
        MissingHostError, match=r"colour 'grey' is defined by math:.* and math:.*; uninstall one of them"
    ):
        colours.get("grey")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise RuntimeError('no licence\\nnor two lines')", "cannot be imported: RuntimeError: no licence; repair"),
        ("import no_such_package", "cannot be imported: No module named 'no_such_package'; repair"),
        ("def f(:", "cannot be imported: SyntaxError: invalid syntax"),
        ("THING = 3", "is an object of int; expected an object of Fraction"),
        ("from fractions import Fraction as THING", "is a class; expected an object of Fraction"),
        (f"from {__name__} import GREY as THING", "has the attribute name='grey'; expected"),
    ],
)
def test_what_another_distribution_breaks_is_one_line_and_leaves_the_rest(
    body: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    shades = Registry("shade", GROUP, {"half": f"{__name__}:HALF"}, Fraction)
    module = f"broken_{zlib.crc32(body.encode())}"
    (tmp_path / f"{module}.py").write_text(body, encoding="utf-8")
    plug_in(tmp_path, monkeypatch, GROUP, "bad", f"{module}:THING")
    with pytest.raises(MissingHostError, match=rf"^shade 'bad' \({module}:THING\) {re.escape(message)}[^\n]*$"):
        shades.get("bad")
    assert [name for name, _ in shades.items()] == ["half"]


def test_members_that_are_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    numbers = Registry("number", GROUP, {"whole": "builtins:int"}, int, of_classes=True)
    plug_in(tmp_path, monkeypatch, GROUP, "text", "builtins:str")
    assert numbers.get("whole") is int
    with pytest.raises(MissingHostError, match="is a class; expected a subclass of int"):
        numbers.get("text")
