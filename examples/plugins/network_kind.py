"""Example of a kind of network: recurrent language models."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from nas_core.graph import Graph
from nas_core.models import OnePassKind
from nas_core.space import Architecture, SearchSpace


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """Input of a latency measurement."""

    words: int = 12
    vocab: int = 100


class LanguageModel(nn.Module):
    def __init__(self, widths: tuple[int, ...], vocab: int) -> None:
        super().__init__()
        self.words, self.output = nn.Embedding(vocab, widths[0]), nn.Linear(widths[-1], vocab)
        self.rnn = nn.ModuleList(nn.RNN(in_size, out_size) for in_size, out_size in pairwise((widths[0], *widths)))

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)  # (T, B, C)
        for layer in self.rnn:
            x = layer(x)[0]
        return self.output(x)


class LanguageModels(OnePassKind):
    name, genes, params_description = "rnn_lm", ("rnn.layers", "rnn.width"), "parameters of the layers"
    operations, attributes, workload_config = ("embedding", "rnn", "output"), ("width",), Sentence

    def params_m(self, architecture: Architecture) -> float:
        widths = architecture.numbers("rnn.width")
        return sum((in_size + out_size + 2) * out_size for in_size, out_size in pairwise((widths[0], *widths))) / 1e6

    def flops_g(self, architecture: Architecture) -> float:
        return 2 * Sentence().words * self.params_m(architecture) / 1e3

    def graph(self, architecture: Architecture) -> Graph:
        widths = architecture.numbers("rnn.width")
        sizes = [[width / 64] for width in (widths[0], *widths, widths[-1])]
        return Graph([0, *[1] * len(widths), 2], pairwise(range(len(sizes))), attributes=sizes)

    def build(self, space: SearchSpace, architecture: Architecture, config: Sentence) -> LanguageModel:
        return LanguageModel(architecture.numbers("rnn.width"), config.vocab).eval()

    def inputs(self, architecture: Architecture, config: Sentence) -> tuple[Tensor, ...]:
        return (torch.randint(config.vocab, (config.words, 1)),)


KIND = LanguageModels()
