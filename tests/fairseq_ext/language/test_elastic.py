"""fairseq's ``--arch transformer_lm`` as the largest subnet of a supernet, and back."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY
from torch import Tensor

from fairseq_ext.elastic.mapping import language_state
from fairseq_ext.elastic.settings import language_settings
from nas_core.errors import ConfigError
from nas_core.models.kind import kind_of
from nas_core.space import Architecture
from nas_core.supernet import open_supernet, open_trained
from nas_core.supernet.elastic import Trained, take_over
from nas_core.supernet.elastic.stack_space import language_around, language_genes
from tests.contracts.elastic_source import ElasticSourceContract
from tests.fairseq_ext.distillation.teachers import as_taught, left_of_teacher
from tests.fairseq_ext.running import USER_DIR, quiet_environment, run

SIZES = ["--decoder-layers", 2, "--decoder-embed-dim", 16, "--decoder-input-dim", 16, "--decoder-output-dim", 16,
         "--decoder-ffn-embed-dim", 24, "--decoder-attention-heads", 4]  # fmt: skip
FORMS: dict[str, list[object]] = {
    "post-norm": [],
    "pre-norm": ["--decoder-normalize-before", "--share-decoder-input-output-embed", "--activation-fn", "gelu",
                 "--no-scale-embedding"],
    "learned": ["--decoder-normalize-before", "--no-decoder-final-norm", "--decoder-learned-pos",
                "--activation-fn", "gelu_accurate", "--share-decoder-input-output-embed"],
}  # fmt: skip
TOKENS = torch.tensor([[2, 7, 5, 9, 8, 4], [2, 4, 6, 10, 11, 12]])


@pytest.fixture(scope="module")
def transformer_lm(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """``transformer_lm(form)``: the checkpoint of such a network after one update, all its weights random."""
    made: dict[str, Path] = {}

    def checkpoint(form: str) -> Path:
        if form not in made:
            folder = tmp_path_factory.mktemp("transformer-lm")
            done = run(
                "train", text, "--task", "language_modeling", "--arch", "transformer_lm", *SIZES, *FORMS[form],
                "--tokens-per-sample", 24, "--optimizer", "adam", "--batch-size", 8, "--criterion", "cross_entropy",
                "--max-update", 1, "--cpu", "--num-workers", 0, "--disable-validation",
                "--distributed-world-size", 1, "--save-dir", folder,
            )  # fmt: skip
            assert done.code == 0, (done.err, done.out[-2000:])
            content = torch.load(folder / "checkpoint_last.pt", weights_only=True)
            stream = torch.Generator().manual_seed(2)
            for name, tensor in content["model"].items():  # constants would hide mistakes
                if tensor.ndim == 1 and not name.endswith("version"):
                    tensor.add_(torch.randn(tensor.shape, generator=stream), alpha=0.3)
            torch.save(content, folder / "checkpoint_last.pt")
            made[form] = folder / "checkpoint_last.pt"
        return made[form]

    return checkpoint


class TestLanguage(ElasticSourceContract):
    @pytest.fixture(scope="class")
    def checkpoint(self, transformer_lm: Callable[[str], Path], text: Path) -> Path:
        type(self).data = str(text)
        return transformer_lm("learned")  # the other forms are those of the plain checkpoints below

    def host_gradients(self, trained: Trained, batch: Any) -> Mapping[str, Tensor]:
        from fairseq.criterions.cross_entropy import CrossEntropyCriterion

        model = trained._model  # private: the host's own network, which a take-over alone compares with
        criterion = CrossEntropyCriterion(trained._task, False)  # private: its dictionary
        loss, size, _ = criterion(model, batch)
        model.zero_grad()
        (loss / size).backward()
        for parameter in model.parameters():
            parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        gradients = language_state(model, trained.net)
        wanted = {name for name, _ in trained.net.named_parameters()}
        return {name: gradient for name, gradient in gradients.items() if name in wanted}

    def trained_further(self, supernet: Path, folder: Path) -> Path:
        done = run(
            "train", self.data, "--user-dir", USER_DIR, "--task", "supernet_language_modeling",
            "--arch", "mos_transformer_lm", "--finetune-from-model", supernet, "--optimizer", "adam", "--lr", 0.01,
            "--batch-size", 8, "--max-update", 2, "--cpu", "--num-workers", 0, "--disable-validation",
            "--distributed-world-size", 1, "--tokens-per-sample", 24, "--criterion", "cross_entropy",
            "--save-dir", folder,
        )  # fmt: skip
        assert done.code == 0, (done.err, done.out[-2000:])
        return folder / "checkpoint_last.pt"

    def output(self, supernet: Any, architecture: Any) -> Tensor:
        with torch.no_grad(), supernet.model.using(architecture):
            logits: Tensor = supernet.model(TOKENS)[0]
        return logits


WITHOUT_THE_PROJECT = """
import json, sys
import torch
from fairseq import checkpoint_utils
found, criteria = [], []
for path in sys.argv[3:]:
    (model,), settings, task = checkpoint_utils.load_model_ensemble_and_task([path], {"data": sys.argv[1]})
    criteria.append(type(task.build_criterion(settings.criterion)).__name__)
    with torch.no_grad():
        found.append(model.eval()(torch.tensor(json.loads(sys.argv[2])))[0].tolist())
ours = sorted(name for name in sys.modules if name.split(".")[0] in ("fairseq_ext", "nas_core"))
print(json.dumps({"logits": found, "ours": ours, "criteria": criteria}))
"""


def narrow(space: Any, **genes: Any) -> Architecture:
    """Width 12 with three heads of 4 numbers."""
    largest = {**space.largest().to_dict(), "embed_dim": 12, "ffn_dim": [18, 18], "heads": [3, 3]}
    found: Architecture = space.validate(Architecture({**largest, **genes}))
    return found


def test_fairseq_alone_computes_the_same(transformer_lm: Callable[[str], Path], text: Path, tmp_path: Path) -> None:
    expected, paths = [], []
    for form in FORMS:
        take_over(open_trained(transformer_lm(form), data=str(text), calibrate=1), tmp_path / f"{form}.super",
                  importance_by="activation", calibrate=1)  # fmt: skip
        as_taught(tmp_path / f"{form}.super", "distilled_cross_entropy")
        supernet: Any = open_supernet(tmp_path / f"{form}.super")
        supernet.extract(narrow(supernet.space), tmp_path / "subnet.pt")
        assert left_of_teacher(tmp_path / "subnet.pt") == ("cross_entropy", set())
        paths.append(tmp_path / f"{form}.pt")
        assert supernet.extract_plain(narrow(supernet.space), paths[-1]) > 0
        with torch.no_grad(), supernet.model.using(narrow(supernet.space)):
            expected.append(supernet.model(TOKENS)[0])
        for genes, said in (({"ffn_dim": [18, 24]}, "ffn_dim is 18, 24"), ({"heads": [2, 2]}, "queries are 8 wide")):
            with pytest.raises(ConfigError, match=said):
                supernet.extract_plain(narrow(supernet.space, **genes), tmp_path / "no.pt")
    command = [sys.executable, "-c", WITHOUT_THE_PROJECT, str(text), json.dumps(TOKENS.tolist()), *map(str, paths)]
    environment = {name: value for name, value in quiet_environment().items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=text, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found["ours"]) <= {"nas_core", "nas_core.torchvision_fix"}, "more than what every python starts with"
    assert found["criteria"] == ["CrossEntropyCriterion"] * len(paths)
    for logits, wanted in zip(found["logits"], expected, strict=True):
        assert float((torch.tensor(logits) - wanted).abs().max() / wanted.abs().max()) <= 1e-5
    again = open_trained(paths[1], data=str(text))
    assert again.difference(again.net) <= 1e-5 and again.space.largest()["embed_dim"] == 12
    assert not (tmp_path / "no.pt").exists()


PUBLIC = {
    "transformer_lm_gpt": (12, 768, 3072, 12),
    "transformer_lm_gpt2_small": (24, 1024, 4096, 16),
    "transformer_lm_gpt3_small": (12, 768, 3072, 12),
    "transformer_lm_big": (12, 1024, 4096, 16),
}


@pytest.mark.parametrize("arch", PUBLIC)
def test_spaces_of_published_architectures(arch: str) -> None:
    args = Namespace(arch=arch, tokens_per_sample=512)
    ARCH_CONFIG_REGISTRY[arch](args)
    _, sizes = language_settings(vars(args), {"task": {"_name": "language_modeling"}}, Path("a.pt"))
    assert tuple(sizes) == (*PUBLIC[arch], 512)
    space = language_around("around", sizes)
    assert dict(space.largest()) == language_genes(sizes)
    assert kind_of(space).params_m(space.smallest()) < kind_of(space).params_m(space.largest()) / 4


def test_other_attention_of_a_language_model_is_fitted(
    transformer_lm: Callable[[str], Path], text: Path, tmp_path: Path
) -> None:
    kinds = ("softmax", "linear", "local")
    trained = open_trained(transformer_lm("learned"), data=str(text), space="attention", attention=kinds)
    assert trained.space.cardinality() == 9, "nothing but the kinds of two layers"
    done = take_over(trained, tmp_path / "supernet.pt", calibrate=5, fit_steps=20)
    linear = [each for each in done.fitted if each.kind == "linear"]
    assert len(linear) == 2 and len(done.fitted) == 4
    assert all(each.after < each.solved <= 0.9 * each.before for each in linear), linear
    supernet = open_supernet(tmp_path / "supernet.pt")
    losses = {kind: supernet.evaluate(Architecture({**trained.space.largest(), "attention": (kind, kind)}))["loss"]
              for kind in kinds}  # fmt: skip
    assert len(set(losses.values())) == 3
