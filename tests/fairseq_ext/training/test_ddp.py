"""Two workers under torch's own DDP, which looks for parameters that a subnet did not use, against one worker."""

from argparse import Namespace

import pytest
import torch

from fairseq_ext import compat
from nas_core.errors import ConfigError
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


@pytest.mark.parametrize("backend", ["pytorch_ddp", "c10d"])
def test_torchs_ddp_has_to_look_for_unused_parameters(monkeypatch, backend):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    args = Namespace(distributed_world_size=2, ddp_backend=backend)
    with pytest.raises(ConfigError, match=f"{backend} .* give legacy_ddp, or add --find-unused-parameters"):
        compat.check_training(args)
    args.find_unused_parameters = True
    compat.check_training(args)
    args.cpu = True
    with pytest.raises(ConfigError, match="needs a GPU for each worker; on the CPU give legacy_ddp"):
        compat.check_training(args)
    args.distributed_world_size = 1
    compat.check_training(args)


def test_workers_that_torchrun_started_count(monkeypatch):
    """With one GPU in each of two machines fairseq's option says 1."""
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    args = Namespace(distributed_world_size=1, ddp_backend="pytorch_ddp", cpu=True)
    with pytest.raises(ConfigError, match="give legacy_ddp"):
        compat.check_training(args)
    args.ddp_backend = "legacy_ddp"
    compat.check_training(args)
