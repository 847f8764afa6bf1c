"""Two workers on one CPU that are interrupted, against one worker that accumulates two batches."""

import pytest
import torch

from nas_core.space import Architecture
from nas_core.supernet import sandwich
from nas_core.supernet.sampling import draw
from tests.fairseq_ext.running import SPACE, passed
from tests.fairseq_ext.training.ranks import two_workers


@pytest.mark.slow
def test_two_workers_equal_accumulation(arguments, tmp_path):
    """Both read the checkpoint of the first two updates, and store the options as they were given."""
    common = [*arguments, "--task", "supernet_translation", "--sampling", "sandwich", "--clip-norm", 1.0]
    common += ["--dropout", 0.0, "--disable-validation"]
    for updates in (2, 4):
        ranks = two_workers(tmp_path, [*common, "--max-update", updates, "--save-dir", tmp_path / "two"])
    single = passed("train", *common, "--max-update", 4, "--update-freq", 2, "--save-dir", tmp_path / "one")

    drawn = [[Architecture(genes) for genes in rank["drawn"]] for rank in ranks]
    steps = [list(sandwich(SPACE, draw(SPACE, update)).values()) for update in range(4)]
    assert drawn[0] == drawn[1] == [architecture for step in steps[2:] for architecture in step]
    assert single.drawn == [architecture for step in steps for architecture in step * 2]

    alone, saved = (torch.load(tmp_path / name / "checkpoint_last.pt", weights_only=True) for name in ("one", "two"))
    assert not saved["cfg"]["checkpoint"]["load_checkpoint_on_all_dp_ranks"]
    torch.testing.assert_close(ranks[0]["model"], ranks[1]["model"], rtol=0, atol=0)
    torch.testing.assert_close(dict(saved["model"]), dict(ranks[0]["model"]), rtol=0, atol=0)
    torch.testing.assert_close(dict(alone["model"]), dict(saved["model"]), rtol=1e-4, atol=2e-4)
