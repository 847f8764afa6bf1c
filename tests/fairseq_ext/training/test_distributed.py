"""Two workers on one CPU, against one worker that accumulates two batches."""

import pytest
import torch

from nas_core.space import Architecture
from nas_core.supernet import sandwich
from nas_core.supernet.sampling import draw
from tests.fairseq_ext.running import SPACE, passed
from tests.fairseq_ext.training.ranks import two_workers


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["spos", "sandwich"])
def test_two_workers_equal_accumulation(arguments, tmp_path, sampling):
    """Plain SGD for single subnets: fairseq's distributed wrapper gives weights of absent layers a zero gradient, on
    which Adam moves them by their momentum, whereas without it they have none and stay."""
    optimizer = ["--optimizer", "sgd", "--lr", 0.5] if sampling == "spos" else ["--optimizer", "adam", "--lr", 0.01]
    common = [*arguments, *optimizer, "--task", "supernet_translation", "--sampling", sampling, "--clip-norm", 1.0]
    common += ["--dropout", 0.0, "--max-update", 4]
    ranks = two_workers(tmp_path, [*common, "--save-dir", tmp_path / "two"])
    one = passed("train", *common, "--update-freq", 2, "--save-dir", tmp_path / "one")

    drawn = [[Architecture(genes) for genes in rank["drawn"]] for rank in ranks]
    random = [draw(SPACE, update) for update in range(4)]
    steps = [[a] if sampling == "spos" else list(sandwich(SPACE, a).values()) for a in random]
    assert drawn[0] == drawn[1] == [architecture for step in steps for architecture in step]
    assert one.drawn == [architecture for step in steps for architecture in step * 2]

    alone = torch.load(tmp_path / "one" / "checkpoint_last.pt", weights_only=True)["model"]
    kept = torch.load(tmp_path / "two" / "checkpoint_last.pt", weights_only=True)["model"]
    torch.testing.assert_close(ranks[0]["model"], ranks[1]["model"], rtol=0, atol=0)
    torch.testing.assert_close(dict(kept), dict(ranks[0]["model"]), rtol=0, atol=0)
    torch.testing.assert_close(dict(alone), dict(kept), rtol=1e-4, atol=2e-4)
