"""Families of networks with random sizes: what data sets of whole networks' latencies are made of."""

from nas_core.latency.families.branches import GOOGLENET, SQUEEZENET
from nas_core.latency.families.chains import ALEXNET, VGG
from nas_core.latency.families.encoder import ENCODER
from nas_core.latency.families.family import Built, Family, Settings, chosen_families, network_families
from nas_core.latency.families.nasbench201 import NASBENCH201
from nas_core.latency.families.translation import TRANSLATION

__all__ = ["CORE", "Built", "Family", "Settings", "chosen_families", "network_families"]

CORE = (ALEXNET, VGG, SQUEEZENET, GOOGLENET, NASBENCH201, ENCODER, TRANSLATION)
"""Families that need no host."""
