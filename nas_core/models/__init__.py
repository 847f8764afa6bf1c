"""Kinds of network, each whole in one folder: genes, network, subnet, costs, graph, workload, export, and its kind."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.costs import flops_g, params_m
    from nas_core.models.kind import KINDS, ModelKind, OnePassKind, fitting_kind, kind_of, workload_of
    from nas_core.models.nasbench201 import NasBench201Net, nasbench201_network
    from nas_core.models.parts import SpacePart
    from nas_core.models.workload import Convertible, OnePassWorkload, Workload

__all__ = [
    "KINDS",
    "Convertible",
    "ModelKind",
    "NasBench201Net",
    "OnePassKind",
    "OnePassWorkload",
    "SpacePart",
    "Workload",
    "fitting_kind",
    "flops_g",
    "kind_of",
    "nasbench201_network",
    "params_m",
    "workload_of",
]

__getattr__, __dir__ = lazy_names(__name__)
