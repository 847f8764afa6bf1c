"""A space of tiny networks, and fairseq's commands inside this process.

Commands run in-process where the command line itself is not the point: starting Python with torch and fairseq takes
longer than these trainings. What a command would write to its terminal is returned, errors included.
"""

from __future__ import annotations

import importlib
import io
import json
import logging
import os
import random
import socket
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils, metrics
from fairseq.models import ARCH_CONFIG_REGISTRY

import fairseq_ext
from fairseq_ext import compat
from fairseq_ext.model import TranslationModel
from nas_core.space import Architecture, SearchSpace, translation_space
from nas_core.space.files import space_to_dict
from nas_core.space.language import language_space
from nas_core.space.masked_lm import masked_lm_space
from tests.warm import python, warm

ROOT = Path(__file__).parents[2]
USER_DIR = str(Path(fairseq_ext.__file__).parent)
BIN = Path(sys.executable).parent
SPACE = translation_space(
    "tiny",
    embed_dims=(16, 12),
    ffn_dims=(32, 24, 16),
    heads=(4, 2),
    encoder_layers=(2,),
    decoder_layers=(2, 1),
    qkv_dim=16,
)
LANGUAGE_SPACE = language_space(
    "tiny-language",
    layers=(3, 2),
    embed_dims=(16, 12),
    ffn_dims=(32, 24, 16),
    heads=(4, 2),
    head_dim=4,
    context_length=26,
    attention=("softmax", "linear"),
)
MASKED_SPACE = masked_lm_space(
    "tiny-masked",
    layers=(2, 1),
    embed_dims=(24, 16),
    ffn_dims=(32, 16),
    heads=(3, 2),
    head_dim=8,
    sequence_length=12,
)
UPDATES = 120
"""Length of the shared trainings: enough that sentences get different translations."""
CPU: list[object] = ["--cpu", "--num-workers", 0, "--distributed-world-size", 1]
"""Options of every training; fairseq would start a process for each GPU of the machine, also with ``--cpu``."""
MASKED: list[object] = [
    "--criterion", "masked_lm", "--sample-break-mode", "eos", "--tokens-per-sample", 12, "--mask-prob", 0.3,
]  # fmt: skip
"""Options of trainings on masked sentences."""
CLASSES: list[object] = [
    "--criterion", "sentence_prediction", "--num-classes", 2, "--init-token", 0, "--max-positions", 12,
]  # fmt: skip
"""Options of trainings on sentences with labels."""
_ENCODER = [
    "--encoder-layers",
    2,
    "--encoder-embed-dim",
    16,
    "--encoder-ffn-embed-dim",
    24,
    "--encoder-attention-heads",
    4,
]
OWN: dict[str, tuple[str, list[object]]] = {
    "translation": ("joined", [
        "--arch", "transformer", *_ENCODER, "--decoder-layers", 2, "--decoder-embed-dim", 16,
        "--decoder-ffn-embed-dim", 32, "--decoder-attention-heads", 4, "--dropout", 0.1,
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--batch-size", 64,
    ]),
    "language": ("text", [
        "--task", "language_modeling", "--arch", "transformer_lm", "--decoder-layers", 2, "--decoder-embed-dim", 16,
        "--decoder-input-dim", 16, "--decoder-output-dim", 16, "--decoder-ffn-embed-dim", 24,
        "--decoder-attention-heads", 4, "--tokens-per-sample", 24, "--criterion", "cross_entropy", "--batch-size", 8,
    ]),
    "masked_lm": ("text", ["--arch", "roberta_base", *_ENCODER, "--task", "masked_lm", *MASKED, "--batch-size", 64]),
    "classifier": ("labelled", [
        "--arch", "roberta_base", *_ENCODER, "--task", "sentence_prediction", *CLASSES, "--batch-size", 64,
    ]),
}  # fmt: skip
"""Data fixture and options of ``fairseq-train`` for fairseq's own models, by kind."""
PRE_NORM = ["--encoder-normalize-before", "--decoder-normalize-before"]
FORMS: dict[str, dict[str, list[object]]] = {
    "translation": {
        "post-norm": [],
        "pre-norm": [*PRE_NORM, "--share-decoder-input-output-embed", "--activation-fn", "gelu",
                     "--no-scale-embedding"],
        "learned": ["--encoder-learned-pos", "--decoder-learned-pos", "--share-all-embeddings",
                    "--activation-fn", "gelu_accurate", "--max-source-positions", 40, "--max-target-positions", 50],
        "unequal": [*PRE_NORM, "--encoder-embed-dim", 24, "--encoder-attention-heads", 6, "--activation-fn", "tanh",
                    "--no-token-positional-embeddings"],
    },
    "language": {
        "post-norm": [],
        "pre-norm": ["--decoder-normalize-before", "--share-decoder-input-output-embed", "--activation-fn", "gelu",
                     "--no-scale-embedding"],
        "learned": ["--decoder-normalize-before", "--no-decoder-final-norm", "--decoder-learned-pos",
                    "--activation-fn", "gelu_accurate", "--share-decoder-input-output-embed"],
    },
    "masked_lm": {
        "base": [],
        "prenorm": ["--arch", "roberta_prenorm", "--activation-fn", "gelu_accurate"],
        "untied": ["--untie-weights-roberta", "--activation-fn", "relu", "--max-positions", 20],
    },
    "classifier": {"gelu": ["--pooler-activation-fn", "gelu"]},
}  # fmt: skip
"""Options of fairseq's own models of every form that can be converted, by kind."""
DECODING = ["--user-dir", USER_DIR, "--beam", 4, "--num-workers", 0, "--max-len-a", 0, "--max-len-b", 12, "--cpu"]
"""Options of decoding. By default fairseq cuts hypotheses by the longest source of their batch."""

ALONE = """
import sys, torch
from fairseq import checkpoint_utils
found = {"logits": [], "criteria": []}
for case in torch.load("cases.pt", weights_only=True):
    (model,), settings, task = checkpoint_utils.load_model_ensemble_and_task([case["path"]], {"data": case["data"]})
    found["criteria"].append(type(task.build_criterion(settings.criterion)).__name__)
    with torch.no_grad():
        found["logits"].append(model.eval()(*case["inputs"], **case["options"])[0])
found["ours"] = sorted(name for name in sys.modules if name.split(".")[0] in ("fairseq_ext", "nas_core"))
torch.save(found, "found.pt")
"""


@dataclass
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str
    drawn: list[Architecture] = field(default_factory=list)
    """Architectures whose weights were selected for training, in order."""

    def stats(self, tag: str) -> list[dict[str, float]]:
        """The JSON that fairseq logged under this tag, its numbers as floats."""
        results = []
        for line in self.out.splitlines():
            *_, name, content = ["", "", *line.split(" | ")]
            if name == tag and content.startswith("{"):
                results.append({key: float(value) for key, value in json.loads(content).items()})
        return results

    def hypotheses(self) -> dict[int, tuple[float, str]]:
        """Score and text of the best hypothesis, by sentence number."""
        rows = [line.split("\t") for line in self.out.splitlines() if line.startswith("H-")]
        return {int(number[2:]): (float(score), text) for number, score, text in rows}


def run(command: str, *arguments: object) -> Finished:
    """``fairseq-COMMAND ARGUMENTS`` in this process; an exception ends as it would at the top of the command."""
    module = importlib.import_module(f"fairseq_cli.{command}")
    for function in (checkpoint_utils.save_checkpoint, getattr(module, "should_stop_early", None)):
        if hasattr(function, "best"):
            del function.best
    metrics.reset()
    out, err = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(name)s | %(message)s"))
    root, argv, hook = logging.getLogger(), sys.argv, sys.excepthook
    level, disabled, handlers = root.level, logging.root.manager.disable, root.handlers
    root.handlers = [handler]  # fairseq-validate puts one of its own in place of all others
    root.setLevel(logging.INFO)
    for name in ("fairseq", "fairseq_ext"):  # quiet once a supernet was opened
        logging.getLogger(name).setLevel(logging.NOTSET)
    sys.argv = [f"fairseq-{command}", *map(str, arguments)]
    code = 0
    compat.report_wrong_input()
    with redirect_stdout(out), redirect_stderr(err), recording() as drawn:
        try:
            module.cli_main()
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
        except Exception:
            sys.excepthook(*sys.exc_info())
            code = 1
        finally:
            sys.argv, sys.excepthook = argv, hook
            root.handlers = handlers
            root.setLevel(level)
            logging.disable(disabled)
    return Finished(code, out.getvalue(), err.getvalue(), drawn)


def passed(command: str, *arguments: object) -> Finished:
    """The same of a command that must succeed."""
    done = run(command, *arguments)
    assert done.code == 0, (done.err, done.out[-2000:])
    return done


def randomised(path: Path, factor: float = 1.0) -> Path:
    """The checkpoint with random biases and norms, which as constants would hide mistakes, and larger matrices."""
    content = torch.load(path, weights_only=True)
    stream = torch.Generator().manual_seed(2)
    for name, tensor in content["model"].items():
        if tensor.ndim == 1 and not name.endswith("version"):
            tensor.add_(torch.randn(tensor.shape, generator=stream), alpha=0.3)
        elif "embed" not in name:
            tensor.mul_(factor)
    torch.save(content, path)
    return path


def fairseq_alone(folder: Path, cases: list[dict[str, Any]]) -> list[torch.Tensor]:
    """Logits of checkpoints in a process of fairseq that knows nothing of this project.

    Each case has ``data``, ``path``, ``inputs``, ``options`` of the model's forward, and the name of its criterion's
    class, which is checked.
    """
    torch.save(cases, folder / "cases.pt")
    program, environment = python()
    environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
    done = subprocess.run([program, "-c", ALONE], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    result = torch.load(folder / "found.pt", weights_only=True)
    assert set(result["ours"]) <= {"nas_core", "nas_core.torchvision_fix"}, "more than what every python starts with"
    assert result["criteria"] == [case["criterion"] for case in cases]
    return list(result["logits"])


@contextmanager
def recording() -> Iterator[list[Architecture]]:
    """The architectures of training forwards, in order."""
    drawn: list[Architecture] = []
    select = TranslationModel.active_subnet

    def noted(model: Any) -> Any:
        if model.training:
            drawn.append(model.architecture)
        return select(model)

    TranslationModel.active_subnet = noted
    try:
        yield drawn
    finally:
        TranslationModel.active_subnet = select


def shell(*command: object, timeout: float = 200) -> Finished:
    """A real command of this environment."""
    name, *arguments = map(str, command)
    done = subprocess.run(
        ["bash", "-c", 'exec "$@"', "bash", name, *arguments], capture_output=True, text=True,
        env=quiet_environment(), timeout=timeout, check=False,
    )  # fmt: skip
    return Finished(done.returncode, done.stdout, done.stderr)


def quiet_environment() -> dict[str, str]:
    """The environment of other processes, which start at once: one thread, no GPU."""
    paths = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return warm({**os.environ, **paths, "CUDA_VISIBLE_DEVICES": ""})


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def assert_one_line(done: Finished, *parts: str) -> None:
    """A wrong input ended as the project promises."""
    lines = [line for line in done.err.splitlines() if "nas-ext: error:" in line]
    assert done.code != 0 and len(lines) == 1, (done.code, done.err, done.out[-2000:])
    assert "Traceback" not in done.err, done.err
    assert all(part in lines[0] for part in parts), lines[0]


def subnet(space: SearchSpace = SPACE) -> Architecture:
    genes = dict(space.largest().to_dict())
    genes |= {"encoder.embed_dim": 12, "encoder.ffn_dim": [16, 24], "decoder.ffn_dim": [24, 16]}
    genes |= {"decoder.self_heads": [2, 4], "decoder.cross_heads": [4, 2], "decoder.arbitrary_cross": [1, -1]}
    return space.validate(Architecture(genes))


def set_up(task: Any, config: Any, corpus: Path, **options: Any) -> Any:
    """A task as fairseq sets it up; the settings it shares with other groups, which a command fills in, are given."""
    shared = {"dataset_impl": None, "required_seq_len_multiple": 1, "train_subset": "train"}
    return task.setup_task(config(data=str(corpus), source_lang="src", target_lang="tgt", **shared, **options))


def build(task: Any, **options: Any) -> Any:
    """A model of ``--arch mos_transformer_small`` over the tiny space."""
    defaults = {"search_space_json": json.dumps(space_to_dict(SPACE)), "mos_router_hidden": 8, "dropout": 0.0}
    args = Namespace(**{**defaults, **options})
    ARCH_CONFIG_REGISTRY["mos_transformer_small"](args)
    torch.manual_seed(1)
    return TranslationModel.build_model(args, task)


def sentence(stream: random.Random) -> list[str]:
    """Words that count on from a random one: what is masked follows from its neighbours."""
    start, length = stream.randrange(12), stream.randint(3, 8)
    return [f"w{(start + place) % 12}" for place in range(length)]


class Backward:
    """As much of an optimizer as a training step uses."""

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """All gradients, zero where there is none; then forgotten."""
    gradients = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in model.named_parameters()}
    model.zero_grad(set_to_none=True)
    return gradients


def mapped_gradients(trained: Any, loss: torch.Tensor) -> dict[str, torch.Tensor]:
    """Gradients of fairseq's model under the names of the elastic network, which has none where they are zero."""
    model, net = trained._model, trained.net  # private: the host's own network
    model.zero_grad()
    loss.backward()
    for parameter in model.parameters():
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    gradients = trained.convert_weights(model, net)
    used = {name: parameter.grad is not None for name, parameter in net.named_parameters()}
    assert not any(gradients[name].any() for name, has_gradient in used.items() if not has_gradient)
    return {name: gradients[name] for name, has_gradient in used.items() if has_gradient}
