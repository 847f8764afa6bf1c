"""Messages of the typed errors: one line, the choices, the closest one."""

import pickle

import pytest

from nas_core import cli, errors
from nas_core.cli import doctor
from nas_core.errors import NasExtError, unknown_choice


def test_every_public_error_is_rooted_in_one_class():
    types = [value for value in vars(errors).values() if isinstance(value, type)]
    classes = [value for value in types if value.__module__ == errors.__name__]
    assert len(classes) == 10
    assert all(issubclass(value, NasExtError) for value in classes)


def test_who_typed_a_command_is_told_what_to_type(monkeypatch, capsys):
    error = NasExtError("give shapes={'x': (1, 3)}", command_line="give\n --shapes x=1,3")
    assert (str(error), error.command_line) == ("give shapes={'x': (1, 3)}", "give --shapes x=1,3")
    assert pickle.loads(pickle.dumps(error)).command_line == error.command_line
    assert NasExtError("the same").command_line == "the same"
    monkeypatch.setattr(doctor, "rows", lambda imports: (_ for _ in ()).throw(error))
    assert cli.main(["doctor"]) == 2
    assert capsys.readouterr().err == "nas-ext: error: give --shapes x=1,3\n"


def test_unknown_choice_names_what_was_got_the_choices_and_the_closest():
    message = str(unknown_choice("search space", "hat_smal", ["hat_small", "mformer"]))
    assert message == "unknown search space 'hat_smal': expected one of hat_small, mformer. Did you mean 'hat_small'?"


@pytest.mark.parametrize(
    ("got", "choices", "closest"),
    [
        ("HAT_SMALL", ["mformer", "hat_small"], "'hat_small'"),
        (3000, [512, 1024, 2048, 3072], "3072"),
        (0.4, [0.25, 0.5], "0.5"),
    ],
)
def test_closest_choice(got, choices, closest):
    assert str(unknown_choice("value", got, choices)).endswith(f"Did you mean {closest}?")


def test_long_lists_are_cut_and_counted():
    message = str(unknown_choice("layer", "none", (f"layer{i}" for i in range(1000))))
    assert len(message) < 700
    assert "(1000 in all)" in message
