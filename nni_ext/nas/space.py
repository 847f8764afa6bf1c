"""Search spaces of ``nas_core`` as model spaces of NNI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from nas_core.space import Architecture, SearchSpace, space_from_dict, space_to_dict
from nas_core.space.labels import options_by_label
from nni_ext.compat import host_class, nni_module
from nni_ext.graphs import Sample, architecture_of

_FEATURE = "searching spaces of nas_core with NNI"
_ModelSpace: Any = host_class("nni.nas.nn.pytorch", "ModelSpace", _FEATURE)


class ArchitectureModule(nn.Module):
    """What an evaluator gets as its model: an architecture, without weights."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture

    def extra_repr(self) -> str:
        return repr(self.architecture)


class ArchitectureSpace(_ModelSpace):
    """A search space with one mutable per gene and layer; labels are those of ``architecture_of``.

    A frozen model is an :class:`ArchitectureModule`, so that a function in NNI's ``FunctionalEvaluator`` finds the
    architecture in ``model.architecture``.

    Args:
        space: what ``space_to_dict`` gives; plain data, as NNI sends it to other processes.

    Raises:
        SpaceError: malformed data. MissingHostError: NNI is absent.
    """

    def __init__(self, space: Mapping[str, Any]) -> None:
        super().__init__()
        self.space = space_from_dict(space)
        choice = nni_module("nni", _FEATURE).choice
        for label, options in options_by_label(self.space).items():
            self.add_mutable(choice(label, list(options)))

    def freeze(self, sample: Sample) -> ArchitectureModule:
        self.validate(sample)
        return ArchitectureModule(architecture_of(self.space, sample))

    @classmethod
    def create_fixed_module(cls, sample: Sample, space: Mapping[str, Any]) -> ArchitectureModule:
        return ArchitectureModule(architecture_of(space_from_dict(space), sample))

    def extra_repr(self) -> str:
        return repr(self.space)


def as_model_space(space: SearchSpace) -> ArchitectureSpace:
    """The space for NNI's strategies, any of which can search it.

    Raises:
        MissingHostError: NNI is absent.
    """
    return ArchitectureSpace(space=space_to_dict(space))
