"""Training update of a supernet, relative to fairseq's ``transformer`` of the same sizes.

An update is that of fairseq's trainer: forward, ``label_smoothed_cross_entropy``, backward, gradient clipping, Adam.
Rows alternate in changing order. Ratios are taken within a round.

- ``plain``: fairseq's ``transformer``.
- ``static``: this project's network of the same sizes (``--subnet``).
- ``none``: the supernet of HAT's space at the architecture equal to ``plain``; at the WMT size its matrices are larger,
and Adam updates them whole.
- ``layer``, ``neuron``: the same supernet with two experts.
- ``none, fused loss``: ``none`` with ``fused_label_smoothed_cross_entropy``.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fairseq
import numpy as np
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY
from fairseq.models.transformer import TransformerModel
from fairseq.optim.adam import FairseqAdam

from benchmarks.parts.timing import quartiles, time_rounds
from benchmarks.parts.update_sizes import Size, batch_of
from fairseq_ext.criterion import FusedLabelSmoothedCrossEntropy
from fairseq_ext.model import TranslationModel
from nas_core.space import Architecture, get_space

AIMS = (("none", "plain", 1.10), ("layer", "none", 1.08), ("neuron", "none", 1.08))
OTHER_RATIOS = (("static", "plain"), ("none, fused loss", "plain"), ("layer", "plain"), ("neuron", "plain"))


@dataclass(frozen=True)
class Task:
    """Attributes of a fairseq task that models and criterions read."""

    dictionary: Dictionary

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    target_dictionary = source_dictionary


def vocabulary(size: Size) -> Task:
    dictionary = Dictionary()
    for index in range(size.vocabulary - len(dictionary)):
        dictionary.add_symbol(f"w{index}")
    return Task(dictionary)


def sample_of(size: Size) -> dict[str, Any]:
    batch = batch_of(size)
    net_input = {"src_tokens": batch.source, "prev_output_tokens": batch.previous, "src_lengths": batch.lengths}
    return {
        "net_input": {name: torch.from_numpy(value) for name, value in net_input.items()},
        "target": torch.from_numpy(batch.target),
        "ntokens": int(batch.lengths.sum()),
    }


def equal_architecture(size: Size) -> Architecture:
    """Return the architecture that equals fairseq's transformer."""
    genes = dict(get_space(size.space).largest().to_dict())
    for side in ("encoder", "decoder"):
        genes[f"{side}.embed_dim"] = size.embed_dim
        genes[f"{side}.ffn_dim"] = [size.ffn_dim] * size.layers
    for gene in ("encoder.self_heads", "decoder.self_heads", "decoder.cross_heads"):
        genes[gene] = [size.heads] * size.layers
    genes["decoder.arbitrary_cross"] = [-1] * size.layers
    return get_space(size.space).validate(Architecture(genes))


def fairseq_arguments(size: Size) -> Namespace:
    args = Namespace(dropout=0.1, share_all_embeddings=True, max_source_positions=1024, max_target_positions=1024)
    for side in ("encoder", "decoder"):
        for name, value in (
            ("embed_dim", size.embed_dim),
            ("ffn_embed_dim", size.ffn_dim),
            ("layers", size.layers),
            ("attention_heads", size.heads),
        ):
            setattr(args, f"{side}_{name}", value)
    ARCH_CONFIG_REGISTRY["transformer"](args)
    return args


def fairseq_model(size: Size, task: Any) -> Any:
    return TransformerModel.build_model(fairseq_arguments(size), task)


def project_model(size: Size, task: Any, mos: str, static: bool = False) -> TranslationModel:
    args = Namespace(search_space=size.space, mos=mos, dropout=0.1, share_all_embeddings=True)
    if static:
        args.subnet_json = json.dumps(equal_architecture(size).to_dict())
    ARCH_CONFIG_REGISTRY["mos_transformer"](args)
    return TranslationModel.build_model(args, task)


def optimizer_of(model: Any) -> FairseqAdam:
    settings = Namespace(
        lr=[1e-4], adam_betas="(0.9,0.98)", adam_eps=1e-8, weight_decay=0.0, tpu=False,
        use_old_adam=False, fp16_adam_stats=False, fp16=False,
    )  # fmt: skip
    return FairseqAdam(settings, list(model.parameters()))


def update_of(model: Any, optimizer: FairseqAdam, criterion: Any, batch: dict[str, Any]) -> Callable[[], None]:
    def update() -> None:
        model.train()
        optimizer.zero_grad()
        loss, size, _ = criterion(model, batch)
        optimizer.backward(loss)
        optimizer.multiply_grads(1.0 / size)
        optimizer.clip_grad_norm(1.0)
        optimizer.step()

    return update


def make_updates(
    size: Size, task: Task, batch: dict[str, Any]
) -> tuple[dict[str, Callable[[], None]], dict[str, float]]:
    """Return the update function and the millions of parameters of each row, by name."""
    plain = LabelSmoothedCrossEntropyCriterion(task, sentence_avg=False, label_smoothing=0.1)
    fused = FusedLabelSmoothedCrossEntropy(task, sentence_avg=False, label_smoothing=0.1)
    updates, params_m = {}, {}
    for name in ("plain", "static", "none", "layer", "neuron"):
        torch.manual_seed(1)
        if name == "plain":
            model = fairseq_model(size, task)
        else:
            model = project_model(size, task, "none" if name == "static" else name, name == "static")
            model.train_architecture = equal_architecture(size)
        optimizer = optimizer_of(model)
        updates[name] = update_of(model, optimizer, plain, batch)
        params_m[name] = round(sum(parameter.numel() for parameter in model.parameters()) / 1e6, 2)
        if name == "none":
            updates["none, fused loss"] = update_of(model, optimizer, fused, batch)
    return updates, params_m


def measure(size: Size, repeats: int) -> dict[str, Any]:
    """Return milliseconds of an update, and ratios: medians and quartiles over rounds."""
    task = vocabulary(size)
    batch = sample_of(size)
    updates, params_m = make_updates(size, task, batch)
    durations = {name: np.array(seconds) for name, seconds in time_rounds(updates, repeats, size.space).items()}

    def ratio(name: str, base: str) -> dict[str, Any]:
        return {"ratio": f"{name} / {base}", **quartiles(durations[name] / durations[base], 3)}

    return {
        "target_tokens": batch["ntokens"],
        "vocabulary": size.vocabulary,
        "params_m": params_m,
        "update_ms": {name: quartiles(1000 * seconds, 1) for name, seconds in durations.items()},
        "aims": [{**ratio(*pair), "at_most": aim, "reached": ratio(*pair)["median"] <= aim} for *pair, aim in AIMS],
        "further": [ratio(*pair) for pair in OTHER_RATIOS],
        "repeats": repeats,
    }


def version() -> str:
    return str(fairseq.__version__)
