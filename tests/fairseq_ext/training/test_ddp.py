"""Two workers under torch's own DDP, which looks for parameters that a subnet did not use, against one worker."""

import pytest
import torch

from tests.fairseq_ext.running import free_port
from tests.fairseq_ext.training.ddp_rank import CASES, UPDATES, Trainings
from tests.fairseq_ext.training.ranks import results_of


@pytest.fixture(scope="module")
def ranks(corpus, tmp_path_factory):
    """What each of two processes ends with."""
    folder, port = tmp_path_factory.mktemp("ddp"), free_port()
    return results_of(
        folder,
        [["tests.fairseq_ext.training.ddp_rank", folder / f"{rank}.pt", corpus, port, rank] for rank in range(2)],
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda case: "-".join(CASES[case][:2]))
def test_gradients_are_the_mean_of_all_workers(corpus, ranks, case):
    """Those of the sandwich's first subnets too, whose backward passes tell the others nothing. What no worker used has
    no gradient, as with one worker: ``legacy_ddp`` has zeros there."""
    alone = Trainings(corpus).gradients(case, [0, 1], lambda model, views: model)
    for update in range(len(UPDATES)):
        first, second = ranks[0][case][update], ranks[1][case][update]
        assert {name: value is None for name, value in first.items()} == {
            name: value is None for name, value in alone[update].items()
        }
        for name, gradient in first.items():
            if gradient is not None:
                assert torch.equal(gradient, second[name]), name
                torch.testing.assert_close(2 * gradient, alone[update][name], rtol=1e-4, atol=1e-5, msg=name)
    unused = sum(value is None for value in alone[0].values())
    assert (unused > 0) == (CASES[case][0] == "spos")
