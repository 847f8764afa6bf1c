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
    curves = training_curves(log)
    assert curves is not None and curves.over == "updates" and curves.source == log
    assert curves.panels == {
        "loss (bits per token)": {
            "training": ([50.0], [11.981]),
            "validation": ([134.0, 268.0], [8.5, 7.5]),
            "validation, largest": ([134.0, 268.0], [8.4, 7.25]),
            "validation, smallest": ([134.0], [8.7]),
        }
    }


@pytest.mark.parametrize(
    ("settings", "belongs"),
    [
        ("{{'checkpoint': {{'_name': None, 'save_dir': '{0}/supernet', 'restore_file': 'x'}}}}", True),
        ("Namespace(lr=[1], save_dir='{0}/supernet/', seed=1)", True),
        ("{{'save_dir': '../{1}/supernet'}}", True),
        ("{{'save_dir': 'retrained'}}", False),
        ("{{}}", False),
    ],
)
def test_logs_of_a_training_are_found(settings: str, belongs: bool, tmp_path: Path) -> None:
    logs = [tmp_path / name for name in ("supernet/a.log", "logs/supernet.log", "logs/train.log", "supernet.log")]
    for log in logs:
        log.parent.mkdir(exist_ok=True)
        head = settings.format(tmp_path, tmp_path.name)
        log.write_text(f"{HEAD}fairseq_cli.train | {head}\n{HEAD}{SIMPLE[1]}\n", encoding="utf-8")
    assert training_logs(tmp_path / "supernet" / "checkpoint_best.pt") == (logs if belongs else [])
