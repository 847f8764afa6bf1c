"""NN-Former: a graph transformer with attention along edges and between siblings."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nas_core.graph import GraphError, Graphs
from nas_core.predictor.nn_former.attend import dropout
from nas_core.predictor.nn_former.batch import Batch, Topology
from nas_core.predictor.nn_former.config import NNFormerConfig
from nas_core.predictor.nn_former.packed import PackedBatch, PackedTopology


class Attention(nn.Module):
    """Adjacency- and sibling-masked attention (ASMA, equations 6 to 10), with one mask per quarter of the heads."""

    def __init__(self, config: NNFormerConfig) -> None:
        super().__init__()
        self.heads, self.dropout = config.heads, config.dropout
        self.qkv = nn.Linear(config.dim, 3 * config.dim, bias=config.bias)
        self.out = nn.Linear(config.dim, config.dim, bias=config.bias)

    def forward(self, x: Tensor, topology: Topology | PackedTopology) -> Tensor:
        mixed = topology.attend(self.qkv(x), self.heads, self.dropout if self.training else 0.0)
        return dropout(self.out(mixed), self.dropout, self.training)


class FeedForward(nn.Module):
    """Feed-forward layer with sums over parents and children (BGIFFN, equations 11 to 13)."""

    def __init__(self, config: NNFormerConfig) -> None:
        super().__init__()
        hidden = config.ratio * config.dim
        self.dropout, self.has_bias = config.dropout, config.bias
        self.up = nn.Linear(config.dim, hidden, bias=config.bias)
        self.graph = nn.Linear(config.dim, hidden, bias=config.bias)
        self.down = nn.Linear(hidden, config.dim, bias=config.bias)

    def forward(self, x: Tensor, topology: Topology | PackedTopology) -> Tensor:
        hidden = functional.relu(self.up(x) + self._relatives(x, topology))
        hidden = dropout(hidden, self.dropout, self.training)
        return dropout(self.down(hidden), self.dropout, self.training)

    def _relatives(self, x: Tensor, topology: Topology | PackedTopology) -> Tensor:
        sums = topology.sums(x)
        size = self.graph.out_features // len(sums)
        weights = torch.split(self.graph.weight, size)
        output = torch.cat([functional.linear(s, w) for s, w in zip(sums, weights, strict=True)], -1)
        if not self.has_bias:
            return output
        ones = torch.ones_like(x[..., :1])
        degrees = torch.cat([degree.expand(*x.shape[:-1], size) for degree in topology.sums(ones)], -1)
        return output + degrees * self.graph.bias


class Block(nn.Module):
    """Pre-norm attention and feed-forward layer with residual connections (equations 2 and 3)."""

    def __init__(self, config: NNFormerConfig) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.dim)
        self.attention = Attention(config)
        self.norm_feed_forward = nn.LayerNorm(config.dim)
        self.feed_forward = FeedForward(config)
        scaled = config.layer_scale > 0
        self.scale_attention = nn.Parameter(torch.full((config.dim,), config.layer_scale)) if scaled else None
        self.scale_feed_forward = nn.Parameter(torch.full((config.dim,), config.layer_scale)) if scaled else None

    def forward(self, x: Tensor, topology: Topology | PackedTopology) -> Tensor:
        """Map ``(B, L, C)`` to ``(B, L, C)``."""
        mixed = self.attention(self.norm_attention(x), topology)
        x = x + (mixed if self.scale_attention is None else self.scale_attention * mixed)
        mixed = self.feed_forward(self.norm_feed_forward(x), topology)
        x = x + (mixed if self.scale_feed_forward is None else self.scale_feed_forward * mixed)
        return x


COSTS = 3  # number of costs of a node: FLOPs, parameters, memory access
_EPS = 1e-9
_MIN_STD = 1e-3


class LogReadout(nn.Module):
    """Readout that predicts latency in ms from summed node codes and static features, such as FLOPs."""

    def __init__(self, dim: int, static: int) -> None:
        super().__init__()
        self.up = nn.Linear(dim, 2 * dim)
        self.static = nn.Linear(static, dim) if static else None
        self.hidden = nn.Linear((3 if static else 2) * dim, dim)
        self.head = nn.Linear(dim, 1)
        self.scale: Tensor
        self.register_buffer("scale", torch.tensor([[0.0, 1.0]] * (static + 1)))
        """``(F + 1, 2)`` mean and standard deviation of log static features, and of log latency"""

    def node_codes(self, encoded: Tensor) -> Tensor:
        """Return codes ``(B, N, 2 C)`` with L2 norm 1 of encoded nodes ``(B, N, C)``."""
        return functional.normalize(functional.relu(self.up(encoded)).float(), dim=-1)

    def forward(self, total: Tensor, static: Tensor | None) -> Tensor:
        """Return ms ``(B,)`` from summed codes ``(B, 2 C)`` and static features ``(B, F)``."""
        codes = [torch.log1p(total)]
        if self.static is not None and static is not None:
            scaled = standardised(static.clamp(min=_EPS).log(), self.scale[:-1])
            codes.append(functional.relu(self.static(scaled)))
        mean, deviation = self.scale[-1]
        output = self.head(functional.relu(self.hidden(torch.cat(codes, -1)))).squeeze(-1).float()
        milliseconds: Tensor = (output * deviation + mean).exp()
        return milliseconds

    def set_scale(self, graphs: Graphs, latency_ms: Tensor) -> None:
        columns = [] if graphs.static is None else list(torch.from_numpy(graphs.static.copy()).unbind(1))
        if len(columns) + 1 != len(self.scale):
            raise GraphError(
                f"graphs have {len(columns)} static features, but the model was built for {len(self.scale) - 1}; give"
                " graphs with that number, or another setting static"
            )
        logarithms = torch.stack([*(x.clamp(min=_EPS).log() for x in columns), latency_ms.float().log()])
        self.scale.copy_(scale_of(logarithms))


def scale_of(values: Tensor) -> Tensor:
    """Return the mean and standard deviation ``(F, 2)`` of each row of ``(F, G)``."""
    return torch.stack([values.mean(1), values.std(1).clamp(min=_MIN_STD)], 1)


def standardised(values: Tensor, scale: Tensor) -> Tensor:
    """Standardise ``(B, F)`` by mean and standard deviation ``(F, 2)``; constant features become 0."""
    mean, deviation = scale.unbind(1)
    return torch.where(deviation > _MIN_STD, (values - mean) / deviation, 0.0)


class NNFormer(nn.Module):
    """Graph transformer that predicts one number per graph (NN-Former, section 3)."""

    def __init__(self, config: NNFormerConfig) -> None:
        super().__init__()
        self.config = config
        dim = config.dim
        if config.readout == "class_token":
            self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
            self.depth = nn.Linear(config.max_nodes, dim, bias=False)
        features = config.operations + 10 * config.attributes + 20 * config.shapes
        features += COSTS if config.readout == "logarithm" else 0
        self.embed = nn.Linear(features, dim, bias=not config.embed_norm)
        self.embed_norm = nn.LayerNorm(dim) if config.embed_norm else nn.Identity()
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(dim)
        if config.readout == "class_token":
            self.static = nn.Linear(config.static, dim, bias=False) if config.static else None
            self.head = nn.Linear(dim, 1)
        elif config.readout == "logarithm":
            self.logarithm = LogReadout(dim, config.static)
        else:
            self.node_up, self.node_down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
            self.static = nn.Linear(10 * config.static, dim) if config.static else None
            self.hidden = nn.Linear(dim * (2 if config.static else 1), dim)
            self.head = nn.Linear(dim, 1)
        self.reset()

    def reset(self) -> None:
        """Initialise weights: normal with standard deviation 0.02 (accuracy) or 1 / sqrt(fan-in) (latency)."""
        summed = self.config.readout != "class_token"
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=module.in_features**-0.5 if summed else 0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        if not summed:
            nn.init.normal_(self.class_token, std=0.02)

    def forward(self, batch: Batch | PackedBatch, topology: Topology | PackedTopology | None = None) -> Tensor:
        """Return predictions ``(B,)``. ``topology`` is computed from ``batch`` if it is None."""
        return self.read(self.encode(batch, topology), batch)

    def encode(self, batch: Batch | PackedBatch, topology: Topology | PackedTopology | None = None) -> Tensor:
        """Return the normalised output of the last block: ``(B, C)`` with a class token, otherwise ``(B, N, C)``."""
        self.check(batch)
        if topology is None and isinstance(batch, PackedBatch):
            topology = PackedTopology.of(batch.edges, batch.ops.numel(), batch.ops.device)
        elif topology is None and isinstance(batch, Batch):
            topology = Topology.of(batch, self.config)
        x = self.embed_nodes(batch)
        for block in self.blocks:
            x = block(x, topology)
        normed: Tensor = self.norm(x[:, 0] if self.config.readout == "class_token" else x)
        return normed

    def read(self, encoded: Tensor, batch: Batch | PackedBatch) -> Tensor:
        """Return predictions ``(B,)`` from the output of :meth:`encode`."""
        if self.config.readout == "class_token":
            output: Tensor = self.head(encoded)
            return output.squeeze(-1).float() + self.config.offset
        if self.config.readout == "logarithm":
            milliseconds: Tensor = self.logarithm(batch.total(self.logarithm.node_codes(encoded)), batch.static)
            return milliseconds
        drop = self.config.dropout
        hidden = dropout(functional.relu(self.node_up(encoded)), drop, self.training)
        nodes = 0.01 * (encoded + dropout(self.node_down(hidden), drop, self.training))
        total = batch.total(nodes)
        if self.static is not None:
            assert batch.static is not None
            static = dropout(self.static(sinusoids(batch.static, 5).flatten(1)), drop, self.training)
            total = torch.cat([total, functional.relu(static)], -1)
        hidden = dropout(functional.relu(self.hidden(total)), drop, self.training)
        return functional.softplus(self.head(hidden).squeeze(-1).float())

    def embed_nodes(self, batch: Batch | PackedBatch) -> Tensor:
        """Return the embeddings ``(B, L, C)`` of equation 4: class and depth token, if used, then nodes."""
        config = self.config
        features = [one_hot(batch.ops, config.operations)]
        if batch.attributes is not None and config.attributes:
            features.append(sinusoids(batch.attributes, 5).flatten(2))
        if batch.shapes is not None and config.shapes:
            features.append(sinusoids(batch.shapes, 10).flatten(2))
        if batch.costs is not None and config.readout == "logarithm":
            features.append(torch.log1p(batch.costs) / 10)  # about 0 to 2
        x = self.embed(torch.cat(features, -1))
        if config.readout == "class_token":
            depth = self.depth(one_hot(batch.sizes, config.max_nodes)).unsqueeze(1)
            token = self.class_token.expand(len(x), -1, -1)
            if self.static is not None:
                assert batch.static is not None
                token = token + self.static(batch.static).unsqueeze(1)
            x = torch.cat([token.to(x.dtype), depth, x], 1)
        normed: Tensor = self.embed_norm(x)
        return normed

    def check(self, batch: Batch | PackedBatch) -> None:
        """Raise a GraphError if the model does not support the graphs."""
        config, largest = self.config, batch.largest
        if largest >= config.operations:
            raise GraphError(f"a graph has operation index {largest}; this model supports 0 to {config.operations - 1}")
        reads_token = config.readout == "class_token"
        if reads_token and batch.most_nodes >= config.max_nodes:
            raise GraphError(
                f"a graph has {batch.most_nodes} nodes; this model supports at most {config.max_nodes - 1}: fit it with"
                f" max_nodes={batch.most_nodes + 1} or more"
            )
        if reads_token and isinstance(batch, PackedBatch):
            raise GraphError(
                "packed graphs need a model with readout sum or logarithm, not class_token; give padded batches"
            )
        costs = COSTS if config.readout == "logarithm" else 0
        widths = {name: getattr(config, name) for name in ("attributes", "shapes", "static")} | {"costs": costs}
        for name, expected in widths.items():
            values = getattr(batch, name)
            if expected and (values is None or values.shape[-1] != expected):
                count = "none" if values is None else str(values.shape[-1])
                raise GraphError(
                    f"graphs have {count} {name}, but this model was built for {expected}; read them as the training"
                    " graphs"
                )


def one_hot(values: Tensor, length: int) -> Tensor:
    """Return one-hot codes ``(..., length)`` in float32."""  # torch's function synchronises to check the values
    return (values.unsqueeze(-1) == torch.arange(length, device=values.device)).float()


def sinusoids(values: Tensor, frequencies: int) -> Tensor:
    """Return sine and cosine of v · 10000^(-j / F) for j = 0 .. F - 1, interleaved: ``(..., 2 F)``."""
    rates = 10000.0 ** (-torch.arange(frequencies, device=values.device, dtype=torch.float32) / frequencies)
    angles = values.unsqueeze(-1).float() * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)
