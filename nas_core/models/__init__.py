"""Kinds of network, one folder each: network, costs, workload, export, and the kind itself."""

from typing import TYPE_CHECKING

from nas_core.lazy_names import lazy_names

if TYPE_CHECKING:
    from nas_core.models.kind import (
        KINDS,
        ModelKind,
        OnePassKind,
        SpacePart,
        fitting_kind,
        flops_g,
        kind_of,
        params_m,
        workload_of,
    )
    from nas_core.models.nasbench201 import NasBench201Net, nasbench201_network
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
