"""Contract of every trained network that can be converted, of any host.

A new source subclasses :class:`ElasticSourceContract` and says how a checkpoint of a tiny network with random weights
is made, what the host's own gradients are, and how a supernet is trained further.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nas_core.supernet import Supernet, open_supernet
from nas_core.supernet.elastic.conversion import Trained, convert
from nas_core.supernet.elastic.sorting import sort_axes
from nas_core.supernet.host import open_trained


class ElasticSourceContract:
    """Subclass it with a name that starts with ``Test`` and give the fixture ``checkpoint``, the file of a trained
    network with at least two layers, heads and batches of data."""

    data: str | None = None

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        """Gradients of the mean loss by the host's own model, under the names of ``trained.net``."""
        raise NotImplementedError

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        """The checkpoint after two updates of that supernet, with no option that says what the network is like."""
        raise NotImplementedError

    def output(self, supernet: Supernet, architecture: Any) -> Tensor:
        """What a subnet computes for a fixed input, in evaluation mode."""
        raise NotImplementedError

    def open_static(self, path: Path) -> Supernet:
        """A network that was taken out of a supernet."""
        return open_supernet(path, data=self.data)

    def open(self, checkpoint: Path, **options: Any) -> Trained:
        return open_trained(checkpoint, **{"data": self.data, "calibration_batches": 2, **options})

    @pytest.fixture
    def trained(self, checkpoint: Path) -> Trained:
        return self.open(checkpoint)

    @pytest.fixture
    def supernet(self, trained: Trained, tmp_path: Path) -> Supernet:
        """Sorted by importance, layers included."""
        convert(trained, tmp_path / "supernet.pt", importance_by="activation", calibration_batches=2)
        return open_supernet(tmp_path / "supernet.pt", data=self.data)

    def test_the_largest_network_is_the_trained_one(self, trained: Trained) -> None:
        assert trained.difference(trained.net) <= 1e-5
        assert trained.space.cardinality() > 100

    def test_gradients_are_those_of_the_host(self, trained: Trained) -> None:
        (batch,) = trained.calibration(1)
        net = trained.net
        trained.loss(net, net.select(trained.space.largest()), batch).backward()
        expected = self.host_gradients(trained, batch)
        scale = max(float(gradient.abs().max()) for gradient in expected.values())
        results = {name: parameter.grad for name, parameter in net.named_parameters() if parameter.grad is not None}
        assert set(results) == set(expected) and scale > 0
        for name, gradient in expected.items():
            torch.testing.assert_close(
                results[name], gradient, atol=1e-5 * scale, rtol=1e-4, msg=lambda m, n=name: n + m
            )

    def test_another_order_computes_the_same(self, trained: Trained) -> None:
        net, stream = trained.net, torch.Generator().manual_seed(3)
        axes = trained.form.axes(net)
        before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        orders = sort_axes(net, axes, {axis.name: torch.rand(axis.size, generator=stream) for axis in axes})
        assert len({axis.name for axis in axes}) == len(axes) == len(orders)
        assert any("channels" in axis.name for axis in axes)
        moved = {name for name, tensor in net.state_dict().items() if not torch.equal(tensor, before[name])}
        named = {dimension.name for axis in axes for dimension in axis.dims}
        assert moved <= named and all(len(before[name].unique()) == 1 for name in named - moved)
        assert trained.difference(net) <= 1e-5

    def test_a_smaller_network_is_extracted(self, supernet: Supernet, tmp_path: Path) -> None:
        for name in ("smallest", "largest"):
            architecture = getattr(supernet.space, name)()
            assert supernet.extract(architecture, tmp_path / f"{name}.pt") > 0
            static = self.open_static(tmp_path / f"{name}.pt")
            assert static.space.cardinality() == 1
            result, expected = self.output(static, architecture), self.output(supernet, architecture)
            assert torch.allclose(result, expected, atol=1e-5 * float(expected.abs().max()))

    def test_it_is_trained_further(self, supernet: Supernet, tmp_path: Path) -> None:
        further = open_supernet(self.trained_further(tmp_path / "supernet.pt", tmp_path / "run"), data=self.data)
        assert further.space == supernet.space
        result, before = (self.output(each, supernet.space.largest()) for each in (further, supernet))
        assert bool(torch.isfinite(result).all()) and not torch.equal(result, before)
