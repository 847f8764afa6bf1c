"""What an architecture costs on paper: parameters and FLOPs, without building it."""

from nas_core.cost.network import flops_g, params_m
from nas_core.cost.translation import Lengths, flops, parameters

__all__ = ["Lengths", "flops", "flops_g", "parameters", "params_m"]
