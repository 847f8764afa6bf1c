"""The contract of trained networks, held by vision transformers of timm's trainer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nas_core.supernet import Supernet
from nas_core.supernet.elastic import Trained
from tests.contracts.elastic_source import ElasticSourceContract
from tests.timm_ext.running import train
from tests.timm_ext.trained.tiny import FORMS, save, vit
from timm_ext import load_model
from timm_ext.host import HOST, ImageSupernet
from timm_ext.trained.weights import state_of


class OfTimm(ElasticSourceContract):
    """The fixtures of one form of :data:`tests.timm_ext.trained.tiny.FORMS`."""

    form: str

    @pytest.fixture
    def checkpoint(self, npz: Path, tmp_path: Path) -> Path:
        self.data = str(npz)
        return save(vit(**FORMS[self.form]), tmp_path / "trained.pth.tar", **FORMS[self.form])

    @pytest.fixture(autouse=True)
    def _data(self, npz: Path) -> None:
        self.data = str(npz)

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        """Those of timm's model, moved into the elastic network as its weights are."""
        model = trained.source.model  # type: ignore[attr-defined]
        images, labels = batch
        model.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.grad)
        found = state_of(model, trained.space)
        if model.patch_embed.proj.bias is None:  # ours has one, which every patch's position adds to
            found["patch_embed.bias"] = found["positions"][model.num_prefix_tokens :].sum(0)
        return found

    def open_static(self, path: Path) -> Supernet:
        return HOST.open_exportable(path)

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        train(Path(str(self.data)), folder, model="", search_space="", init=str(supernet), updates=2, lr=1e-3)
        return folder / "last.pt"

    def output(self, supernet: Supernet, architecture: Any) -> Tensor:
        assert isinstance(supernet, ImageSupernet)
        model = load_model(supernet.path)
        images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(4))
        with torch.no_grad(), model.using(architecture):
            return model(images)


class TestClassToken(OfTimm):
    form = "vit"


class TestMeanOfPatches(OfTimm):
    form = "mean of patches"


class TestNoClassToken(OfTimm):
    form = "no class token"


class TestClip(OfTimm):
    form = "clip"
