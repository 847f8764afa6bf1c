"""What every model of this plug-in is beside fairseq's own: a supernet, or one of its static networks."""

from __future__ import annotations

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

from fairseq.models import ARCH_MODEL_REGISTRY, register_model, register_model_architecture
from torch import Tensor

from fairseq_ext.batching import keep_all_sentences
from fairseq_ext.compat import check_backend, check_precision, one_line_errors, train_in_tf32
from fairseq_ext.families import Family
from fairseq_ext.inherit import differing_options
from fairseq_ext.options import RANGES, resolve_space, resolve_subnet
from nas_core.errors import CheckpointError
from nas_core.options import check_ranges
from nas_core.space import Architecture, SearchSpace
from nas_core.supernet.active import SubnetHolder

Weights = TypeVar("Weights")
Model = TypeVar("Model", bound="SupernetModel[Any]")
_LARGE_GB = 0.5
"""Size of a checkpoint that is worth a warning."""


class SupernetModel(SubnetHolder[Weights]):
    """What a model inherits before fairseq's own base: it is a supernet over a search space, or (with ``--subnet``) the
    static network of one architecture.

    The architecture in use is :attr:`architecture`. While training, ``set_num_updates``, which fairseq calls before
    each forward, draws one at random from the seed and the update number, so all workers, all micro-batches of an
    update and a resumed run agree on it. In evaluation it is the largest unless ``eval_subnet`` names a file.

    A subclass gives :meth:`of_space` and, where it asks more than all do, :meth:`check_new`, :meth:`fill_in` and
    :attr:`resolve_space`.
    """

    args: Namespace
    """The options that it was built with, complete."""
    net: Any
    """The network, a module of :mod:`nas_core.models`."""
    trained_by: ClassVar[str]
    """The names of ``--arch`` whose checkpoints it loads, as an error tells them."""
    family: ClassVar[Family]
    """The options of its kind of network."""

    def hold(self, args: Namespace, net: Any) -> None:
        """Begin with a network; a subclass calls it when fairseq's own base is set up."""
        self.args, self.net = args, net
        self.start(net.space, int(getattr(args, "seed", 1)), args.architecture_draw)
        if getattr(args, "eval_subnet", None):
            self.eval_architecture = self.space.validate(Architecture.load(args.eval_subnet))

    # -- how it is built -----------------------------------------------------------------------------------------------

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add the options that fairseq-train shows."""
        cls.family.add_arguments(parser)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> Self:
        """The model of these options; fairseq calls it, also for a checkpoint's."""
        keep_all_sentences()
        trains = not hasattr(args, "search_space_json")
        with one_line_errors():
            if trains:  # a new model; one trained in half precision decodes anywhere
                check_precision(args)
                check_backend(args)
                cls.check_new(args, task)
                if getattr(args, "tf32", False):
                    train_in_tf32()
            cls.fill_in(args, task)
            check_ranges(args, RANGES)
            space = cls.resolve_space(args)
            architecture = resolve_subnet(args, space)
            own_space = space if architecture is None else SearchSpace.of(architecture, like=space)
            model = cls.of_space(args, task, own_space, space.largest(), architecture is not None)
        what = f"supernet over {space!r}" if architecture is None else f"static network {architecture.key}"
        said = (what, model.net.config.mos.kind, model.said_of_lengths())
        logger = logging.getLogger(cls.__module__)
        logger.info("%s, experts: %s%s", *said)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        if trains and (warning := large_checkpoints(args, parameters)):
            logger.warning(warning)
        return model

    @classmethod
    def check_new(cls, args: Namespace, task: Any) -> None:
        """Check options of a training before anything is built."""

    @classmethod
    def fill_in(cls, args: Namespace, task: Any) -> None:
        """Complete the options of a training or of a checkpoint."""
        cls.family.fill_in(args)

    resolve_space: ClassVar[Callable[[Namespace], SearchSpace]] = staticmethod(resolve_space)
    """The function that gives the space of these options, and writes it there."""

    @classmethod
    def of_space(cls, args: Namespace, task: Any, space: SearchSpace, largest: Architecture, static: bool) -> Self:
        """Build the model.

        Args:
            space: what it chooses from; a ``static`` one holds one architecture.
            largest: of the space that the architecture was taken from.
        """
        raise NotImplementedError

    def said_of_lengths(self) -> str:
        """What the log adds to the model's description."""
        return ""

    # -- the architecture in use ---------------------------------------------------------------------------------------

    def select(self, architecture: Architecture) -> Weights:
        selected: Weights = self.net.select(architecture)
        return selected

    def set_num_updates(self, num_updates: int) -> None:
        super().set_num_updates(num_updates)  # type: ignore[misc]
        self.train_architecture = self.draw(num_updates)

    # -- its weights ---------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True, *args: Any, **kwargs: Any) -> Any:
        with one_line_errors():
            self._check_state(state_dict)
        return super().load_state_dict(state_dict, strict, *args, **kwargs)  # type: ignore[misc]

    def _check_state(self, state: dict[str, Any]) -> None:
        own = self.state_dict()  # type: ignore[attr-defined]
        if not any(name.startswith("net.") for name in state):
            raise CheckpointError(
                f"the checkpoint holds another kind of model; expected one of --arch {self.trained_by}"
            )
        if strange := next((n for n, tensor in state.items() if not isinstance(tensor, Tensor)), None):
            raise CheckpointError(f"{strange} of the checkpoint is no tensor; it is damaged, give another one")
        wrong = next((n for n in own if n in state and own[n].shape != state[n].shape), None)
        missing = next((n for n in own if n not in state), None)
        extra = next((n for n in state if n not in own), None)
        if wrong or missing or extra:
            what = (
                f"{wrong} has shape {tuple(state[wrong].shape)}, expected {tuple(own[wrong].shape)}"
                if wrong
                else f"{missing} is missing"
                if missing
                else f"{extra} is not part of this model"
            )
            other = differing_options(self.args, self.family.inherited)
            raise CheckpointError(
                f"the checkpoint does not fit --search-space/--subnet/--mos: {what}; use the settings it was trained"
                f" with{f' ({other})' if other else ''}, or take a subnet out of a supernet with 'nas-ext extract'"
            )


def large_checkpoints(args: Namespace, parameters: int) -> str | None:
    """Return a warning about the size of the checkpoints of a training, with a smaller architecture to take instead;
    None where they are small or not written."""
    moments = 2 if "adam" in str(getattr(args, "optimizer", "")) else 1
    gigabytes = 4 * parameters * (1 + moments) / 1e9
    if gigabytes < _LARGE_GB or getattr(args, "no_save", False):
        return None
    unneeded = [getattr(args, f"no_{kind}_checkpoints", False) for kind in ("last", "epoch")]
    files = ["best", *(kind for kind, left_out in zip(("last", "each epoch"), unneeded, strict=True) if not left_out)]
    arch = str(getattr(args, "arch", ""))
    stems = ["_".join(arch.split("_")[:count]) for count in range(arch.count("_") + 1, 0, -1)]
    small = next((f"{stem}_small" for stem in stems if f"{stem}_small" in ARCH_MODEL_REGISTRY), None)
    instead = f"; --arch {small} is one for a laptop" if small and not arch.endswith("_small") else ""
    return (
        f"a checkpoint takes about {gigabytes:.1f} GB ({parameters / 1e6:.0f} M parameters, {moments} moment(s) of each"
        f" for the optimizer), once for {', '.join(files)}{instead}"
    )


def register(model: type[Model]) -> type[Model]:
    """Register a class of models with fairseq, under the names of ``--arch`` of its family; return it."""
    register_model(model.family.model)(model)
    for name, fill in model.family.named_architectures():
        register_model_architecture(model.family.model, name)(fill)
    return model
