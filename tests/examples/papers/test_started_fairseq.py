"""The experiments for translation: training starts with the papers' settings; its weights can be averaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

pytest.importorskip("fairseq")

from examples.papers import average
from nas_core.errors import CheckpointError, DataError
from nas_core.space import save_space, with_attention
from tests.examples.papers.conftest import words
from tests.fairseq_ext.running import SPACE, run

pytestmark = pytest.mark.fairseq
SMALL = ["--cpu", "--num-workers", 0, "--max-tokens", 100, "--update-freq", 1]
SMALL += ["--log-format", "json", "--log-interval", 1, "--distributed-world-size", 1]
"""Options that make a training small; the experiment's optimizer and schedule stay."""
STEPS = [
    ("mos_wmt14_en_de", "supernet"),
    ("mos_wmt14_en_de", "further"),
    ("hat_iwslt14_de_en", "supernet"),
    ("hat_iwslt14_de_en", "retrain"),
    ("mformer_wmt14_en_de", "supernet"),
    ("mformer_wmt14_en_de", "retrain"),
    ("ranknas_wmt14_en_de", "supernet"),
    ("ranknas_wmt14_en_de", "retrain"),
]
ADAM = {"hat": ("(0.9,0.98)", 1e-4), "mos": ("(0.9,0.98)", 0), "mfo": ("(0.9,0.998)", 0.1), "ran": ("(0.9,0.98)", 0)}
PEAK = {"hat": 5e-4, "mos": 1e-3, "mfo": 7e-4, "ran": 1e-3}
RISE = {"hat": {"supernet": 10_000, "retrain": 4000}, "mos": {"supernet": 10_000, "further": 4000}}
RISE |= {"mfo": dict.fromkeys(("supernet", "retrain"), 4000), "ran": dict.fromkeys(("supernet", "retrain"), 8000)}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of fairseq-preprocess: 40 pairs of 1 to 6 words with one dictionary."""
    folder, stream = tmp_path_factory.mktemp("corpus"), random.Random(1)
    lines = [" ".join(f"w{stream.randrange(9)}" for _ in range(stream.randint(1, 6))) for _ in range(40)]
    for split, count in (("train", 40), ("valid", 8)):
        for side in ("en", "de"):
            (folder / f"{split}.{side}").write_text("\n".join(lines[:count]) + "\n")
    names = ["--trainpref", folder / "train", "--validpref", folder / "valid", "--destdir", folder / "bin"]
    done = run("preprocess", "-s", "en", "-t", "de", *names, "--joined-dictionary", "--workers", 1)
    assert done.code == 0, done.err
    return folder / "bin"


@pytest.mark.parametrize(("name", "step"), STEPS)
def test_two_updates(name: str, step: str, corpus: Path, tmp_path: Path) -> None:
    kind = name[:3]
    space = with_attention(SPACE, "tiny") if kind == "mfo" else SPACE
    save_space(space, tmp_path / "space.yml")
    space.smallest().save(tmp_path / "A.json")
    program, *rest = words(name, step, DATA=corpus, OUT=tmp_path / "run", ARCH=tmp_path / "A.json")
    drop = "--finetune-from-model"  # what an earlier step would have made
    if drop in rest:
        del rest[rest.index(drop) : rest.index(drop) + 2]
    done = run(program.removeprefix("fairseq-"), *rest, *SMALL, "--search-space", tmp_path / "space.yml",
               "--max-update", 2, "--validate-interval", 1, "--save-interval", 1)  # fmt: skip
    assert done.code == 0, done.err
    rates = [stats["train_lr"] for stats in done.stats("train")] or [stats["lr"] for stats in done.stats("train_inner")]
    risen = 1e-7 + 2 * (PEAK[kind] - 1e-7) / RISE[kind][step]
    assert rates[-1] == pytest.approx(risen, rel=1e-2)
    folder = tmp_path / "run" / {"supernet": "supernet", "further": "further", "retrain": "retrained"}[step]
    config = average.read_checkpoint(folder / "checkpoint_last.pt")["cfg"]
    betas, decay = ADAM[kind]
    assert str(config["optimizer"]["adam_betas"]).replace(" ", "") == betas
    assert float(config["optimizer"]["weight_decay"]) == decay
    assert config["criterion"]["label_smoothing"] == 0.1
    scheduler = config["lr_scheduler"]
    assert scheduler["warmup_updates"] == RISE[kind][step]
    if kind == "mos":
        assert (scheduler["_name"], scheduler["min_lr"], scheduler["lr_shrink"]) == ("cosine", 1e-7, 1.0)
        assert scheduler["lr_period_updates"] + scheduler["warmup_updates"] == 40_000


def test_checkpoints_are_averaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for epoch in (1, 2, 3, 10):
        model = {
            "w": torch.full((2,), float(epoch)),
            "half": torch.full((1,), float(epoch)).half(),
            "n": torch.tensor(7),
        }
        torch.save({"model": model, "cfg": {"epoch": epoch}}, tmp_path / f"checkpoint{epoch}.pt")
    torch.save({"model": {}}, tmp_path / "checkpoint_best.pt")
    assert average.main([str(tmp_path), "--last", "3", "--out", str(tmp_path / "mean.pt")]) == 0
    assert "checkpoint2.pt, checkpoint3.pt, checkpoint10.pt" in capsys.readouterr().out
    result = average.read_checkpoint(tmp_path / "mean.pt")
    assert (result["model"]["w"].tolist(), result["model"]["half"].dtype) == ([5.0, 5.0], torch.float16)
    assert (int(result["model"]["n"]), result["cfg"]) == (7, {"epoch": 10})
    with pytest.raises(DataError, match="has checkpoints of 4 epochs, but --last is 5"):
        average.average(tmp_path, 5, tmp_path / "mean.pt")
    torch.save({"model": {"v": torch.ones(3)}}, tmp_path / "checkpoint9.pt")
    with pytest.raises(CheckpointError, match=r"checkpoint9\.pt .* contain different networks"):
        average.average(tmp_path, 2, tmp_path / "mean.pt")
    (tmp_path / "checkpoint9.pt").write_bytes(b"nothing")
    assert average.main([str(tmp_path), "--last", "2", "--out", str(tmp_path / "mean.pt")]) == 2
    assert "checkpoint9.pt cannot be read as a fairseq checkpoint" in capsys.readouterr().err
    assert average.read_checkpoint(tmp_path / "mean.pt")["model"]["w"].tolist() == [5.0, 5.0]
