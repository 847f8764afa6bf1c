"""FLOPs and graphs of masked language models."""

from __future__ import annotations

import pytest
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nas_core.models.masked_lm.costs import flops, parameters
from nas_core.models.masked_lm.kind import GRAPHS, masked_lm_graph
from nas_core.space import get_space
from tests.models.masked_lm.tiny import ARCHITECTURES, MIXED, VOCAB, build, every_architecture, sentences


@every_architecture
def test_flops_are_those_that_torch_counts(name: str) -> None:
    architecture, net = ARCHITECTURES[name], build()
    tokens = sentences()[3:4]
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        net(net.select(architecture), tokens)
    assert counter.get_total_flops() == flops(architecture, tokens.shape[1], VOCAB)
    assert flops(architecture) == flops(architecture, 12)


def test_robertas_base_network_has_the_parameters_that_its_paper_says() -> None:
    result = parameters(get_space("roberta_base").largest(), 50265)
    assert result == pytest.approx(125e6, rel=0.01)  # Liu et al. 2019, table 9: 125 M, by fairseq's own count


def test_a_graph_is_a_chain_of_sublayers() -> None:
    graph = masked_lm_graph(MIXED.smallest())
    names = [GRAPHS.operations()[op] for op in graph.ops]
    attention = names[1]
    assert names == ["token_embedding", attention, "encoder_feed_forward", "token_head"]
    assert "softmax" not in attention and attention != "encoder_self_attention"
