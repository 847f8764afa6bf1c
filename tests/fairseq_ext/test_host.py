"""A fairseq checkpoint as the supernet that ``nas-ext search`` evaluates."""

import pytest
import torch

from nas_core.errors import ArchitectureError, CheckpointError, DataError, UnknownChoiceError
from nas_core.space import Architecture
from nas_core.supernet import open_supernet
from nas_core.supernet.host import Supernet, each_host
from tests.contracts.host import HostContract
from tests.fairseq_ext.running import SPACE, USER_DIR, passed, subnet


@pytest.fixture(scope="module")
def supernet(trained):
    return open_supernet(trained("neuron"))


class TestFairseqHost(HostContract):
    host = "fairseq"

    @pytest.fixture
    def checkpoint(self, trained):
        return trained("neuron")


def test_the_host_is_found_by_its_entry_point(trained, supernet, corpus):
    host = dict(each_host())["fairseq"]
    assert host.recognises(trained("neuron")) and not host.recognises(corpus / "dict.src.txt")
    assert isinstance(supernet, Supernet) and supernet.space == SPACE
    assert supernet.task["kind"] == "translation"
    assert supernet.task["source_vocab"] == len((corpus / "dict.src.txt").read_text().splitlines()) + 4


def test_loss_is_that_of_fairseq_validate(trained, supernet, corpus, architecture_file):
    done = passed(
        "validate", corpus, "--path", trained("neuron"), "--user-dir", USER_DIR, "--cpu", "--batch-size", 16,
        "--task", "translation", "--model-overrides", repr({"eval_subnet": str(architecture_file)}),
        "--log-format", "json",
    )  # fmt: skip
    theirs, ours = done.stats("valid")[-1], supernet.evaluate(subnet())
    assert ours["loss"] == pytest.approx(theirs["valid_loss"], abs=1e-3)
    assert ours["nll_loss"] == pytest.approx(theirs["valid_nll_loss"], abs=1e-3)


def test_fewer_sentences_are_a_fixed_part(trained, pair, supernet):
    part, reloaded = (open_supernet(trained("neuron"), valid_samples=7) for _ in range(2))
    full = open_supernet(trained("neuron"), valid_samples=1000)
    loss = part.evaluate(subnet())
    assert loss == reloaded.evaluate(subnet()) != supernet.evaluate(subnet()) == full.evaluate(subnet())
    ids = torch.cat([batch["id"] for batch in part.batches()])
    assert len(ids) == 7 == len(set(ids.tolist()))
    assert sum(len(batch["id"]) for batch in full.batches()) == len(pair.dataset("valid"))


def test_what_is_reported_is_what_is_given_back(trained):
    supernet = open_supernet(trained("neuron"))
    supernet.batches().extend(supernet.batches())
    reports = []
    metrics = supernet.evaluate(subnet(), lambda share, values: reports.append((share, dict(values))))
    assert [share for share, _ in reports] == [0.5, 1.0]
    assert reports[-1][1] == metrics == supernet.evaluate(subnet())


def test_wrong_input(trained, supernet, tmp_path):
    foreign = Architecture({**SPACE.largest(), "encoder.embed_dim": 20})
    state = torch.load(trained("neuron"), weights_only=True)
    state["cfg"]["model"].mos = "none"
    torch.save(state, tmp_path / "contradiction.pt")
    (tmp_path / "empty").mkdir()

    def opened(checkpoint=None, **options):
        return open_supernet(checkpoint or trained("neuron"), **options).evaluate(subnet())

    for call, kind in [
        (lambda: supernet.evaluate(foreign), ArchitectureError),
        (lambda: supernet.extract(foreign, tmp_path / "a.pt"), ArchitectureError),
        (lambda: opened(valid_subset="dev"), DataError),
        (lambda: opened(data=str(tmp_path / "none")), DataError),
        (lambda: opened(data=str(tmp_path / "empty")), DataError),
        (lambda: opened(tmp_path / "none.pt"), DataError),
        (lambda: opened(precision="fp8"), UnknownChoiceError),
        (lambda: opened(tmp_path / "contradiction.pt"), CheckpointError),
    ]:
        with pytest.raises(kind) as error:
            call()
        assert "\n" not in str(error.value)
    assert not (tmp_path / "a.pt").exists()
