"""Base class of the models of this package."""

from __future__ import annotations

import json
import logging
from argparse import ArgumentParser, Namespace
from typing import Any, ClassVar, Self, TypeVar

import torch
from fairseq.models import register_model, register_model_architecture

from fairseq_ext.checkpoint import stored_architecture, stored_space
from fairseq_ext.compat import check_training, one_line_errors
from fairseq_ext.families import RANGES, Family
from fairseq_ext.patches import keep_all_sentences
from nas_core.errors import CheckpointError
from nas_core.options import check_ranges
from nas_core.space import Architecture, SearchSpace, get_space
from nas_core.space.files import space_to_dict
from nas_core.supernet.holder import SubnetHolder

logger = logging.getLogger(__name__)

Weights = TypeVar("Weights")
Model = TypeVar("Model", bound="SupernetModel[Any]")


def resolve_subnet(args: Namespace, space: SearchSpace) -> Architecture | None:
    """Return the architecture of ``--subnet``, and store it in ``args`` as JSON; return None for a supernet."""
    if stored := getattr(args, "subnet_json", None):
        return stored_architecture(stored)
    if not args.subnet:
        return None
    architecture = space.validate(Architecture.load(args.subnet))
    args.subnet_json = json.dumps(architecture.to_dict())
    return architecture


class SupernetModel(SubnetHolder[Weights]):
    """Supernet over a search space, or a static network with ``--subnet``; inherit it before fairseq's base class.

    In training, each update samples an architecture from the seed and the update number. Evaluation uses the largest
    architecture, or that of the file ``eval_subnet``.
    """

    args: Namespace
    net: Any
    """Network of :mod:`nas_core.models`."""
    trained_by: ClassVar[str]
    """Names for ``--arch`` whose checkpoints the model can load, for error messages."""
    family: ClassVar[Family]

    def hold(self, args: Namespace, net: Any) -> None:
        """Set the network; call it after the constructor of fairseq's base class."""
        self.args, self.net = args, net
        self.set_space(net.space, int(getattr(args, "seed", 1)), getattr(args, "architecture_draw", "gene"))
        if getattr(args, "eval_subnet", None):
            self.eval_architecture = self.space.validate(Architecture.load(args.eval_subnet))

    # -- construction --------------------------------------------------------------------------------------------------

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        cls.family.add_arguments(parser)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> Self:
        keep_all_sentences()
        with one_line_errors():
            if not hasattr(args, "search_space_json"):  # a model trained in half precision decodes anywhere
                check_training(args)
                if getattr(args, "tf32", False):
                    torch.set_float32_matmul_precision("high")
                    logger.info("matrix products are computed in TF32 (--tf32)")
            cls.family.fill_in(args)
            check_ranges(args, RANGES)
            space = cls.resolve_space(args)
            architecture = resolve_subnet(args, space)
            model_space = space if architecture is None else SearchSpace.of(architecture, like=space)
            model = cls.of_space(args, task, model_space, space.largest(), architecture is not None)
        network = f"supernet over {space!r}" if architecture is None else f"static network {architecture.key}"
        logger.info("%s, experts: %s", network, model.net.config.mos.kind)
        return model

    @classmethod
    def resolve_space(cls, args: Namespace) -> SearchSpace:
        """Return the search space, and store it in ``args`` as JSON."""
        stored = getattr(args, "search_space_json", None) or vars(args).pop("inherited_space_json", None)
        space = stored_space(stored) if stored else get_space(args.search_space)
        args.search_space_json = json.dumps(space_to_dict(space))
        return space

    @classmethod
    def of_space(cls, args: Namespace, task: Any, space: SearchSpace, largest: Architecture, static: bool) -> Self:
        """Check the options, and build the model.

        Args:
            space: search space; it contains one architecture if ``static``.
            largest: largest architecture of ``--search-space``.
        """
        raise NotImplementedError

    # -- architecture --------------------------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> Weights:
        selected: Weights = self.net.select(architecture)
        return selected

    def set_num_updates(self, num_updates: int) -> None:
        super().set_num_updates(num_updates)  # type: ignore[misc]
        self.train_architecture = self.draw(num_updates)

    # -- weights -------------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True, *args: Any, **kwargs: Any) -> Any:
        with one_line_errors():
            self._check_state(state_dict)
        return super().load_state_dict(state_dict, strict, *args, **kwargs)  # type: ignore[misc]

    def _check_state(self, state: dict[str, Any]) -> None:
        expected = self.state_dict()  # type: ignore[attr-defined]
        if not any(name.startswith("net.") for name in state):
            raise CheckpointError(
                "the checkpoint has no weights of a nas-ext network (net.*); give a checkpoint of --arch"
                f" {self.trained_by}"
            )
        mismatches = [
            f"{name} has shape {tuple(state[name].shape)}, expected {tuple(tensor.shape)}"
            for name, tensor in expected.items()
            if name in state and tensor.shape != state[name].shape
        ]
        mismatches += [f"{name} is missing" for name in expected if name not in state]
        mismatches += [f"{name} is not part of this model" for name in state if name not in expected]
        if mismatches:
            raise CheckpointError(
                f"the checkpoint does not fit --search-space, --subnet or --mos: {mismatches[0]}; give the options of"
                " its training, or extract a subnet with 'nas-ext extract'"
            )


class ModelPart:
    """Base class of encoders and decoders; inherit it before fairseq's class."""

    def __init__(self, model: Any, dictionary: Any) -> None:
        super().__init__(dictionary)  # type: ignore[call-arg]
        self._owner = (model,)  # no submodule

    @property
    def model(self) -> Any:
        return self._owner[0]


def register(model: type[Model]) -> type[Model]:
    """Register a model class and its names for ``--arch`` with fairseq."""
    register_model(model.family.model)(model)
    for name, fill in model.family.named_architectures():
        register_model_architecture(model.family.model, name)(fill)
    return model
