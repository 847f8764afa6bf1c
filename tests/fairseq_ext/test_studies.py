"""Studies of supernets of translation: their routers and gradients."""

import pytest
import torch

from nas_core.cli import main
from nas_core.files.journal import append_jsonl, read_jsonl
from nas_core.files.reading import read_json
from nas_core.studies.conflict import gradient_cosine, gradient_of, used_weights
from nas_core.supernet import open_supernet
from tests.fairseq_ext.running import SPACE

pytestmark = pytest.mark.usefixtures("warm_programs")


@pytest.fixture(scope="module")
def supernet(trained):
    return open_supernet(trained("neuron"), valid_sentences=20)


def study(name, out, *arguments):
    return main(["lab", "study", name, "--out", str(out), *map(str, arguments)])


def test_routing_needs_the_checkpoint_alone(trained, tmp_path, capsys):
    assert study("routing", tmp_path, "--checkpoint", trained("neuron"), "--set", "random=2") == 0
    result = read_json(tmp_path / "routing.json")
    distances = {(row["first"], row["second"]): row["distance"] for row in result["rows"]}
    assert len(distances) == 10 and all(0 <= distance <= 0.8326 for distance in distances.values())
    assert distances["smallest", "largest"] == result["summary"][0]["extremes"] > 0
    assert all((tmp_path / f"routing.{suffix}").stat().st_size for suffix in ("png", "html"))
    assert "smallest" in capsys.readouterr().out


def test_the_gradient_is_that_of_the_loss_which_training_minimises(supernet):
    largest, (batch, *_) = SPACE.largest(), supernet.batches()
    model, task = supernet.model, supernet.fairseq_task
    with model.using(largest):
        logits, _ = model(**batch["net_input"])
    log_probs = torch.log_softmax(logits.flatten(0, 1), -1)
    target = batch["target"].flatten()
    keep = target != task.target_dictionary.pad()
    smoothing, words = 0.1, log_probs.shape[1]
    spread = smoothing / (words - 1)
    nll = -log_probs.gather(1, target[:, None])[:, 0]
    loss = ((1 - smoothing - spread) * nll - spread * log_probs.sum(-1))[keep].sum() / keep.sum()
    assert float(supernet.training_loss(largest, batch).detach()) == pytest.approx(float(loss), rel=1e-5)
    names, parameters = zip(*supernet.network.named_parameters(), strict=True)
    by_hand = torch.autograd.grad(loss, parameters, allow_unused=True)
    for name, ours, theirs in zip(names, gradient_of(supernet, largest, batch), by_hand, strict=True):
        torch.testing.assert_close(ours, torch.zeros_like(ours) if theirs is None else theirs, msg=name)


def test_used_weights_are_those_of_the_subnet(supernet):
    smallest = SPACE.smallest()
    masks = used_weights(supernet.network, smallest)
    gradient = gradient_of(supernet, smallest, supernet.batches()[0])
    assert not any(bool((one[~mask] != 0).any()) for one, mask in zip(gradient, masks, strict=True))
    names = [name for name, _ in supernet.network.named_parameters()]
    tables = [mask for name, mask in zip(names, masks, strict=True) if "embedding" in name]
    assert tables and all(mask[:, :12].all() and not mask[:, 12:].any() for mask in tables)
    assert gradient_cosine(gradient, gradient, masks) == pytest.approx(1.0)


def test_gap_trains_standalone_networks_once_for_several_supernets(trained, corpus, tmp_path):
    settings = ["--set", "architectures=3", "--set", "train.max_update=2", "--set", "train.lr=0.005"]
    options = ["--checkpoint", trained("neuron"), "--checkpoint", trained("layer"), *settings]
    assert study("gap", tmp_path, *options) == 0
    records = read_jsonl(tmp_path / "standalone.jsonl")
    assert len(records) == 3 and len({record["examples"] for record in records}) == 1
    result = read_json(tmp_path / "gap.json")
    alone = {row["key"]: row["standalone"] for row in result["rows"]}
    assert len(result["rows"]) == 6 and len(result["summary"]) == 2
    assert all(row["standalone"] == alone[row["key"]] for row in result["rows"])
    networks = {path.name for path in (tmp_path / "standalone").iterdir()}
    assert networks == set(alone)
    state = torch.load(tmp_path / "standalone" / networks.pop() / "checkpoint_last.pt", weights_only=False)
    assert state["cfg"]["optimization"]["max_update"] == 2 and state["cfg"]["optimization"]["lr"] == [0.005]
    assert not any("routers" in name for name in state["model"])
    assert read_json(tmp_path / "standalone.json")["data"] == {"data": str(corpus.resolve())}
    assert study("gap", tmp_path, *options[:-1], "train.lr=0.1", "--set", "architectures=4") == 2


def test_subnets_are_trained_further_under_one_schedule(trained, tmp_path):
    architecture = SPACE.largest()
    record = {"architecture": architecture.to_dict(), "metrics": {"loss": 0.0}, "updates": 8}
    append_jsonl(tmp_path / "standalone.jsonl", record)
    decaying = torch.load(trained("neuron"), weights_only=False)
    schedule = {
        "warmup_updates": 0,
        "total_num_update": 3,
        "force_anneal": None,
        "end_learning_rate": 0.0,
        "power": 1.0,
    }
    decaying["cfg"]["lr_scheduler"] = {"_name": "polynomial_decay", "lr": [0.02], **schedule}
    vars(decaying["cfg"]["model"]).update(schedule, lr_scheduler="polynomial_decay")
    torch.save(decaying, tmp_path / "decaying.pt")
    settings = ["--checkpoint", tmp_path / "decaying.pt", "--set", f"standalone={tmp_path / 'standalone.jsonl'}"]
    settings += ["--valid-sentences", 20]
    assert (
        study(
            "close-gap", tmp_path, *settings, "--set", "every=2", "--set", "most_updates=4", "--set", "train.lr=0.005"
        )
        == 0
    )
    result = read_json(tmp_path / "close-gap.json")
    curve = result["curves"][result["rows"][0]["supernet"]]["1"]
    assert list(curve) == ["0", "2", "4"] and result["rows"][0]["saved"] == pytest.approx(1 - 4 / 8)
    inherited = open_supernet(trained("neuron"), valid_sentences=20).evaluate(architecture)
    assert curve["0"] == pytest.approx(inherited) and abs(curve["2"]["loss"] - inherited["loss"]) < 1
    (folder,) = (path for path in tmp_path.glob("further/*/*") if path.is_dir())
    state = torch.load(folder / "checkpoint_last.pt", weights_only=False)
    assert state["cfg"]["optimization"]["max_update"] == 4 == state["optimizer_history"][-1]["num_updates"]
    assert state["cfg"]["lr_scheduler"]["total_num_update"] == 4 and curve["2"] != curve["4"]  # 3 was the supernet's
    assert not open_supernet(trained("neuron")).kept_networks(folder)  # what was evaluated is deleted


def test_supernets_with_other_experts(trained, tmp_path):
    arguments = [
        "--checkpoint",
        trained("layer"),
        "--valid-sentences",
        20,
        "--set",
        "random=1",
        "--set",
        "train.max_update=1",
    ]
    assert study("experts", tmp_path, *arguments, "--set", "experts=3") == 0
    two, three = read_json(tmp_path / "experts.json")["summary"]
    assert (two["experts"], two["trained"], three["experts"], three["trained"]) == (2, "before", 3, "here")
    weights = torch.load(trained("layer"), weights_only=False)["model"]
    expert_size = sum(tensor[0].numel() for name, tensor in weights.items() if ".ffn.fc" in name)
    assert three["parameters_m"] - two["parameters_m"] > expert_size / 1e6  # routers have an output for it, too
