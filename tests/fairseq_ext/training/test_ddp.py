"""Two workers under torch's own DDP, which looks for parameters that a subnet did not use, against one worker."""

import pytest
import torch

from tests.fairseq_ext.running import free_port
from tests.fairseq_ext.training.ddp_rank import gradients
from tests.fairseq_ext.training.ranks import results_of


@pytest.mark.slow
def test_gradients_are_the_mean_of_all_workers(corpus, tmp_path):
    """A parameter that no worker used has no gradient, as with one worker; ``legacy_ddp`` has zeros there."""
    port = free_port()
    words = [["tests.fairseq_ext.training.ddp_rank", tmp_path / f"{rank}.pt", corpus, port, rank] for rank in range(2)]
    ranks = results_of(tmp_path, words)
    alone = gradients(corpus, [0, 1], lambda model: model)
    for first, second, expected in zip(*ranks, alone, strict=True):
        for name, gradient in first.items():
            assert (gradient is None) == (expected[name] is None), name
            if gradient is not None:
                assert torch.equal(gradient, second[name]), name
                torch.testing.assert_close(2 * gradient, expected[name], rtol=1e-4, atol=1e-5, msg=name)
    assert any(value is None for value in alone[0].values())
