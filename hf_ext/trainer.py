"""Training of a supernet with the ``Trainer`` of ``transformers``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import Trainer

from hf_ext.folder import copy_companions
from hf_ext.network import Subnet, features_of, mask_of, read_settings, read_supernet
from hf_ext.texts import feature_loss
from nas_core.errors import ConfigError, unknown_choice
from nas_core.layers.mos import NONE, MoSConfig
from nas_core.space import Architecture
from nas_core.supernet.sampling import draw, sandwich

SAMPLINGS = ("sandwich", "spos")
TARGETS = ("features", "logits", "labels")


class SupernetTrainer(Trainer):
    """``Trainer`` of ``transformers`` that trains the subnets of a supernet, on one device or one per process.

    Each checkpoint folder is a supernet for ``nas-ext search``.

    Args:
        family: folder of the supernet, written by ``nas-ext elastic``.
        sampling: subnets in each update. ``sandwich``: the largest, the smallest and a random one; ``spos``: a random
            one.
        distill: target of the loss. ``features``: last hidden states of the trained model; ``logits``: its logits;
            ``labels``: labels of the data. Dropout is used with ``labels`` only.
        subnet: train only this architecture.
        mos: experts to add to the feed-forward layers of a supernet without experts.
    """

    def __init__(
        self,
        family: str | Path,
        *args: Any,
        sampling: str = "sandwich",
        distill: str = "features",
        subnet: Architecture | None = None,
        mos: MoSConfig | None = None,
        **options: Any,
    ) -> None:
        if sampling not in SAMPLINGS:
            raise unknown_choice("sampling", sampling, SAMPLINGS)
        if distill not in TARGETS:
            raise unknown_choice("distill", distill, TARGETS)
        self.folder, self.sampling, self.distill = Path(family), sampling, distill
        self.settings, self.supernet = read_settings(self.folder), read_supernet(self.folder)
        self.only = None if subnet is None else self.supernet.space.validate(subnet)
        if mos is not None and mos.kind != NONE:
            if self.supernet.experts is not None:
                raise ConfigError(f"the supernet in {self.folder} has experts already; leave mos out")
            self.supernet.add_experts(mos)
        super().__init__(self.supernet.model, *args, **options)
        if self.args.n_gpu > 1:
            raise ConfigError(
                f"one process has {self.args.n_gpu} GPUs, but a supernet needs a process for each; start torchrun,"
                " or set CUDA_VISIBLE_DEVICES=0"
            )
        if self.args.gradient_checkpointing:
            raise ConfigError("gradient_checkpointing is set, which supernets do not support; leave it out")
        if self.is_fsdp_enabled or self.is_deepspeed_enabled:
            raise ConfigError(
                "FSDP or DeepSpeed is enabled, which supernets do not support; use DDP, by torchrun alone"
            )
        self.model_accepts_loss_kwargs = self.loss_is_scaled_for_ga = False  # Trainer averages accumulated batches
        self.supernet.to(self.args.device)
        self.teacher = None if distill == "labels" else copy.deepcopy(self.supernet).requires_grad_(False).eval()
        self._current: tuple[Subnet, float] | None = None
        self._target: Any = None

    def architectures(self, update: int) -> list[Architecture]:
        if self.only is not None:
            return [self.only]
        sample = draw(self.supernet.space, update, self.args.seed)
        return list(sandwich(self.supernet.space, sample).values()) if self.sampling == "sandwich" else [sample]

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> Tensor:
        architectures = self.architectures(self.state.global_step)
        self._target = self._teacher_output(self._prepare_inputs(dict(inputs)))
        losses = []
        try:
            for architecture in architectures:
                self._current = self.supernet.select(architecture), 1 / len(architectures)
                losses.append(super().training_step(model, dict(inputs), num_items_in_batch))
        finally:
            self._current = self._target = None
        if self.args.world_size > 1 and self.accelerator.sync_gradients:
            # DDP does not reduce gradients, because its own forward pass is not used.
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad = self.accelerator.reduce(parameter.grad, "mean")
        return torch.stack(losses).sum()

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return a subnet's loss divided by the number of subnets per update; in evaluation, the largest subnet's."""
        if self._current is None and self.supernet.experts is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        if self._current is None:
            largest = self.supernet.select(self.supernet.space.largest())
            output = self.supernet(largest, inputs, training=False)
            metrics = {name: value for name, value in output.items() if "hidden_states" not in name}
            return (output["loss"], metrics) if return_outputs else output["loss"]
        subnet, share = self._current
        with self.accelerator.autocast():
            output = self.supernet(subnet, inputs, training=self.teacher is None)
            loss = share * self._loss(output, inputs)
        return (loss, output) if return_outputs else loss

    def _loss(self, output: Any, inputs: Mapping[str, Any]) -> Tensor:
        if self.distill == "labels":
            if output.get("loss") is None:
                raise ConfigError(
                    "distill is 'labels', but the model returned no loss; give a data set with labels, or distill"
                    " 'features'"
                )
            return output["loss"]  # type: ignore[no-any-return]
        if self.distill == "logits":
            if "logits" not in output:
                raise ConfigError("distill is 'logits', but the model returned no logits; give distill 'features'")
            student, teacher = (x.logits.float() for x in (output, self._target))
            positions = mask_of(output, inputs) if student.ndim > 2 else slice(None)
            student, teacher = student[positions].log_softmax(-1), teacher[positions].log_softmax(-1)
            return F.kl_div(student, teacher, reduction="batchmean", log_target=True)
        return feature_loss(features_of(output).float(), features_of(self._target).float(), mask_of(output, inputs))

    def _teacher_output(self, inputs: Mapping[str, Any]) -> Any:
        if self.supernet.model.config.is_encoder_decoder and "labels" not in inputs:
            raise ConfigError("batches have no labels, which a decoder reads; use DataCollatorForSeq2Seq")
        if self.teacher is None:
            return None
        if "attention_mask" not in inputs and "pixel_values" not in inputs:
            raise ConfigError("batches have no attention_mask, which marks padding; give a tokenizer's output")
        with torch.no_grad(), self.accelerator.autocast():
            return self.teacher(self.teacher.select(self.teacher.space.largest()), inputs, training=False)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        super()._save(output_dir, state_dict)
        if not self.args.should_save:
            return
        folder = Path(output_dir or self.args.output_dir)
        copy_companions(self.folder, folder)
        inherited = {name: self.settings.get(name) for name in ("teacher", "data")}
        self.supernet.write_settings(folder, **inherited)
