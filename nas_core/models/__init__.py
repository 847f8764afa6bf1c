"""Kinds of network, each whole in one folder: genes, network, subnet, costs, graph, workload, export."""

from nas_core.models.costs import flops_g, params_m

__all__ = ["flops_g", "params_m"]
