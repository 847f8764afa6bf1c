from pathlib import Path

import pytest

from nas_core.errors import ConfigError, MissingHostError, UnknownChoiceError
from nas_core.registry import Registry
from tests.toys import plug_in

GROUP = "nas_ext.test_colours"


@pytest.fixture
def colours() -> Registry[object]:
    return Registry("colour", GROUP, {"pi": "math:pi", "broken": "math:no_such_name"})


def test_own_members_are_imported_when_asked_for(colours: Registry[object]):
    assert colours.get("pi") == pytest.approx(3.14159, abs=1e-5)
    assert colours.names() == ["pi", "broken"]
    assert dict(colours.items()).keys() == {"pi"}, "what does not import is left out"
    with pytest.raises(MissingHostError, match=r"colour 'broken' \(math:no_such_name\) does not import"):
        colours.get("broken")


def test_an_unknown_name_lists_all(colours: Registry[object]):
    with pytest.raises(UnknownChoiceError, match=r"'pie': expected one of pi, broken. Did you mean 'pi'"):
        colours.get("pie")


def test_registration_is_idempotent_and_loud(colours: Registry[object]):
    assert colours.register("path", Path) is Path
    colours.register("path", Path)
    assert colours.get("path") is Path
    with pytest.raises(ConfigError, match=r"colour 'path' is pathlib\.Path already; .*Registry needs another name"):
        colours.register("path", Registry)
    with pytest.raises(ConfigError, match=r"colour 'pi' is math:pi already"):
        colours.register("pi", Registry)
    colours.unregister("path")
    assert "path" not in colours.names()


def test_another_distribution_offers_a_member(
    colours: Registry[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plug_in(tmp_path, monkeypatch, GROUP, "tau", "math:tau")
    assert colours.names() == ["pi", "broken", "tau"] and colours.get("tau") == pytest.approx(6.28318, abs=1e-5)


def test_two_distributions_with_one_name(
    colours: Registry[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plug_in(tmp_path, monkeypatch, GROUP, "pi", "math:e")
    with pytest.raises(ConfigError, match="colour 'pi' is math:pi and math:e; uninstall one of them"):
        colours.get("pi")
