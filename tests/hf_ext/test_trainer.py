"""Training of a supernet by transformers' trainer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch

from nas_core.errors import ConfigError
from nas_core.supernet import open_supernet
from tests.timm_ext.workers_started import start


def trainer(
    family: Path,
    texts: Path,
    out: Path,
    steps: int = 4,
    changes: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> Any:
    from transformers import AutoTokenizer, DataCollatorWithPadding, TrainingArguments

    from hf_ext import SupernetTrainer

    tokenizer = AutoTokenizer.from_pretrained(family)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    samples = [dict(tokenizer(line)) for line in (texts / "train.txt").read_text().splitlines()]
    settings: dict[str, Any] = {
        "max_steps": steps, "per_device_train_batch_size": 8, "learning_rate": 3e-3, "save_steps": 2,
        "logging_steps": 1, "report_to": [], "use_cpu": True, "disable_tqdm": True, "dataloader_pin_memory": False,
        "lr_scheduler_type": "constant", **changes,
    }  # fmt: skip
    arguments = TrainingArguments(str(out), **settings)
    collator = DataCollatorWithPadding(tokenizer)
    built = SupernetTrainer(family, args=arguments, train_dataset=samples, data_collator=collator, **options)
    built.current_gradient_accumulation_steps = 1  # which train() sets
    return built


def weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def test_training_brings_small_subnets_closer_to_the_teacher(family: Path, texts: Path, tmp_path: Path) -> None:
    before = open_supernet(family)
    trainer(family, texts, tmp_path / "run", steps=40).train()
    after = open_supernet(tmp_path / "run" / "checkpoint-40")
    smallest = before.space.smallest()
    assert after.space == before.space
    assert after.evaluate(smallest)["spearman"] > before.evaluate(smallest)["spearman"]


def test_a_resumed_training_ends_with_the_same_weights(family: Path, texts: Path, tmp_path: Path) -> None:
    trainer(family, texts, tmp_path / "whole").train()
    resumed = trainer(family, texts, tmp_path / "resumed")
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-2"))
    expected = weights(tmp_path / "whole" / "checkpoint-4")
    for name, tensor in weights(tmp_path / "resumed" / "checkpoint-4").items():
        torch.testing.assert_close(tensor, expected[name])


def test_an_update_is_the_mean_of_its_subnets(family: Path, texts: Path, tmp_path: Path) -> None:
    from hf_ext.network import features_of
    from hf_ext.texts import feature_loss

    training = trainer(family, texts, tmp_path / "run")
    batch = next(iter(training.get_train_dataloader()))
    loss = training.training_step(training.model, dict(batch))
    gradients = {name: p.grad.clone() for name, p in training.model.named_parameters() if p.grad is not None}
    training.model.zero_grad()
    net, losses = training.supernet, []
    with torch.no_grad():
        teacher = features_of(net(net.select(net.space.largest()), batch, training=False))
    for architecture in training.architectures(0):
        features = features_of(net(net.select(architecture), batch, training=False))
        losses.append(feature_loss(features, teacher, batch["attention_mask"]) / 3)
    assert len(losses) == 3
    sum(losses).backward()  # type: ignore[union-attr]
    assert float(loss) == pytest.approx(float(sum(losses)), rel=1e-5)
    for name, expected in gradients.items():
        torch.testing.assert_close(training.model.get_parameter(name).grad, expected, rtol=1e-4, atol=1e-7)


def test_one_architecture_trains_its_weights_alone(family: Path, texts: Path, tmp_path: Path) -> None:
    smallest = open_supernet(family).space.smallest()
    training = trainer(family, texts, tmp_path / "run", steps=1, subnet=smallest)
    assert training.architectures(0) == [smallest]
    training.training_step(training.model, dict(next(iter(training.get_train_dataloader()))))
    gradient = training.model.get_parameter("embeddings.LayerNorm.weight").grad
    width = smallest.number("embed_dim")
    assert gradient[:width].abs().min() > 0 and not gradient[width:].any()


def test_accumulated_batches_are_averaged(decoder: Path, texts: Path, tmp_path: Path) -> None:
    losses = []
    for parts in (1, 2):
        changes = {"gradient_accumulation_steps": parts, "per_device_train_batch_size": 8 // parts, "optim": "sgd"}
        training = trainer(decoder, texts, tmp_path / f"{parts}", 1, changes, distill="labels", sampling="spos")
        collate = training.data_collator
        training.data_collator = lambda rows, collate=collate: _labelled(collate(rows))
        training.train()
        losses.append(training.state.log_history[0]["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=0.05)  # means of all tokens, and of two batches


def _labelled(batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {**batch, "labels": batch["input_ids"].where(batch["attention_mask"].bool(), -100)}


def test_two_processes_train_by_their_mean_gradient(family: Path, texts: Path, tmp_path: Path) -> None:
    workers = start(2, "-m", "tests.hf_ext.ddp_rank", str(family), str(texts), str(tmp_path))
    assert [code for code, _, _ in workers] == [0, 0], workers
    assert open_supernet(tmp_path / "run0" / "checkpoint-2").space == open_supernet(family).space
    assert not [*(tmp_path / "run1").rglob("*.json")], "only the first process saves"
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in range(2))
    for name, tensor in first["weights"].items():
        torch.testing.assert_close(tensor, second["weights"][name], msg=name)
    alone = trainer(family, texts, tmp_path / "alone", 2)
    optimizer = torch.optim.SGD(alone.model.parameters(), 3e-3)
    for update in range(2):
        alone.state.global_step = update
        for worker in (first, second):
            for batch in worker["batches"][2 * update : 2 * update + 2]:
                alone.training_step(alone.model, batch)
        for parameter in alone.model.parameters():
            parameter.grad = None if parameter.grad is None else parameter.grad / 4
        optimizer.step()
        optimizer.zero_grad()
    for name, tensor in first["weights"].items():
        torch.testing.assert_close(tensor, alone.model.state_dict()[name], msg=name)


def test_checkpointed_gradients_are_rejected(family: Path, texts: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gradient_checkpointing"):
        trainer(family, texts, tmp_path / "run", changes={"gradient_checkpointing": True})


@pytest.mark.parametrize("distill", ["logits", "labels"])
def test_targets_of_a_head(distill: str, texts: Path, tmp_path: Path) -> None:
    from nas_core.supernet.elastic.conversion import convert
    from nas_core.supernet.host import open_trained
    from tests.hf_ext.tiny import save

    convert(open_trained(save("BertForMaskedLM", tmp_path / "trained")), tmp_path / "family")
    training = trainer(tmp_path / "family", texts, tmp_path / "run", distill=distill, sampling="spos")
    batch = dict(next(iter(training.get_train_dataloader())))
    batch["labels"] = torch.where(torch.arange(batch["input_ids"].shape[1]) == 2, batch["input_ids"], -100)
    assert len(training.architectures(0)) == 1
    assert float(training.training_step(training.model, batch)) > 0
