"""fairseq's log as curves, in both of its formats, whole and cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_ext.training_log import training_curves, training_logs

HEAD = "2026-01-01 00:00:00 | INFO | "
SIMPLE = [
    "fairseq_cli.train | {'_name': None, 'loss': 3}",
    "train_inner | epoch 001:     50 / 134 loss=11.981, nll_loss=11.8, largest_loss=11.4, num_updates=50, lr=0.1",
    "valid | epoch 001 | valid on 'valid' subset | loss 8.5 | nll_loss 8 | largest_loss 8.4 | smallest_loss 8.7"
    " | ppl 255 | wps 4497.1 | num_updates 134 | best_loss 8.5",
    "train | epoch 001 | loss 10.366 | nll_loss 10.008 | num_updates 134 | lr 0.001005",
    "valid | epoch 002 | valid on 'valid' subset | loss 1e+01 | nll_loss nan | largest_loss 7.5 | num_updates 268",
    "valid | epoch 002 | valid on 'valid' subset | loss 7.5 | largest_loss 7.25 | num_updates 268 | best_loss 7.5",
]
JSON = [
    'train_inner | {"epoch": 1, "update": 0.37, "loss": "11.981", "nll_loss": "11.8", "num_updates": "50"}',
    'valid | {"epoch": 1, "valid_loss": "8.5", "valid_nll_loss": "8", "valid_largest_loss": "8.4",'
    ' "valid_smallest_loss": "8.7", "valid_num_updates": "134", "valid_best_loss": "8.5"}',
    'train | {"epoch": 1, "train_loss": "10.366", "train_num_updates": "134"}',
    'valid | {"epoch": 2, "valid_loss": "7.5", "valid_largest_loss": "7.25", "valid_num_updates": "268"}',
    'valid | {"epoch": 3, "valid_lo',
]


@pytest.mark.parametrize("lines", [SIMPLE, JSON])
def test_losses_over_updates(lines: list[str], tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("a warning of hydra\n" + "".join(f"{HEAD}{line}\n" for line in lines), encoding="utf-8")
    found = training_curves(log)
    assert found is not None and found.over == "updates" and found.source == log
    assert found.panels == {
        "loss (bits per token)": {
            "training": ([50.0], [11.981]),
            "validation": ([134.0, 268.0], [8.5, 7.5]),
            "validation, largest": ([134.0, 268.0], [8.4, 7.25]),
            "validation, smallest": ([134.0], [8.7]),
        }
    }


PLACES = ("supernet/a.log", "logs/supernet.log", "logs/train.log", "supernet.log", "train.log")
"""In the --save-dir, or where the demo and shell scripts put them."""


def _logs(folder: Path, settings: str) -> list[Path]:
    """Those that count, of logs in all places that begin with these settings."""
    for name in PLACES:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{HEAD}fairseq_cli.train | {settings}\n{HEAD}{SIMPLE[1]}\n", encoding="utf-8")
    return training_logs(folder / "supernet" / "checkpoint_best.pt")


@pytest.mark.parametrize(
    "settings",
    [
        "{{'checkpoint': {{'_name': None, 'save_dir': '{0}/supernet', 'restore_file': 'x'}}}}",
        "Namespace(lr=[1], save_dir='{0}/supernet/', seed=1)",
        "{{'save_dir': 'supernet'}}",
        "{{'save_dir': '../{1}/supernet'}}",
    ],
)
def test_where_logs_lie(settings: str, tmp_path: Path) -> None:
    assert _logs(tmp_path, settings.format(tmp_path, tmp_path.name)) == [tmp_path / name for name in PLACES]


@pytest.mark.parametrize("settings", ["{'save_dir': 'retrained'}", "{'save_dir': '/other/supernet'}", "{}", ""])
def test_the_log_of_another_training_is_left_out(settings: str, tmp_path: Path) -> None:
    (tmp_path / "supernet").mkdir()
    (tmp_path / "supernet" / "folder.log").mkdir()
    assert _logs(tmp_path, settings) == []


def test_a_log_that_lies_where_two_rules_look_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    log = tmp_path / "train.log"
    log.write_text(f"{HEAD}fairseq_cli.train | {{'save_dir': 'train'}}\n{HEAD}{SIMPLE[1]}\n", encoding="utf-8")
    assert training_logs(tmp_path / "train" / "checkpoint_best.pt") == [log]
