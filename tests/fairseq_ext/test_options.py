"""Registered architectures and what their options mean."""

import importlib
import json
import sys
from argparse import Namespace

import pytest
from fairseq import utils
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch.multiprocessing import ProcessExitedException

from fairseq_ext import compat
from fairseq_ext.families import TRANSLATION
from fairseq_ext.model import TranslationModel
from fairseq_ext.supernet_model import SupernetModel, resolve_space, resolve_subnet
from nas_core.cli.space import MODELS
from nas_core.errors import ArchitectureError, ConfigError, DataError, UnknownChoiceError
from nas_core.space import get_space
from tests.fairseq_ext.running import SPACE, USER_DIR, assert_one_line, build, run, subnet

ARCHITECTURES = {
    "mos_transformer": ("neuron", "hat_wmt14_en_de"),
    "mos_transformer_wmt_en_de": ("neuron", "hat_wmt14_en_de"),
    "mos_transformer_iwslt_de_en": ("neuron", "hat_iwslt14_de_en"),
    "mos_transformer_small": ("neuron", "hat_small"),
    "hat_transformer": ("none", "hat_wmt14_en_de"),
    "hat_transformer_wmt_en_de": ("none", "hat_wmt14_en_de"),
    "hat_transformer_iwslt_de_en": ("none", "hat_iwslt14_de_en"),
    "hat_transformer_small": ("none", "hat_small"),
    "mformer_wmt14_en_de": ("none", "mformer_wmt14_en_de"),
    "mformer_translation_small": ("none", "mformer_translation_small"),
    "mos_mformer_wmt14_en_de": ("neuron", "mformer_wmt14_en_de"),
    "mos_mformer_translation_small": ("neuron", "mformer_translation_small"),
    "cosformer_wmt14_en_de": ("none", "cosformer_wmt14_en_de"),
    "mformer_found_wmt14_en_de": ("none", "mformer_wmt14_en_de"),
    "cosformer_found_wmt14_en_de": ("none", "cosformer_wmt14_en_de"),
    "transformer_found_wmt14_en_de": ("none", "mformer_wmt14_en_de"),
}


def test_all_architectures_are_registered():
    assert {name for name, model in ARCH_MODEL_REGISTRY.items() if model is TranslationModel} == set(ARCHITECTURES)


def test_space_list_has_every_architecture_at_its_space():
    listed = {
        name: space for space, names in MODELS.items() for name in names if "image_size" not in get_space(space).fixed
    }
    spaces = {}
    for name, model in ARCH_MODEL_REGISTRY.items():
        if issubclass(model, SupernetModel):
            args = Namespace()
            ARCH_CONFIG_REGISTRY[name](args)
            spaces[name] = args.search_space
    assert listed == spaces


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architectures_fill_in_what_is_not_given(name):
    mos, space = ARCHITECTURES[name]
    args = Namespace(dropout=0.25)
    ARCH_CONFIG_REGISTRY[name](args)
    assert (args.mos, args.search_space, args.dropout) == (mos, space, 0.25)
    args = Namespace(mos="layer", search_space="mine.yml")
    ARCH_CONFIG_REGISTRY[name](args)
    assert (args.mos, args.search_space) == ("layer", "mine.yml")


@pytest.mark.parametrize("mos", ["mos", "hat"])
def test_presets_of_the_papers_train_as_their_code_does(mos):
    found = {}
    for task in ("wmt_en_de", "iwslt_de_en", "small"):
        args = found[task] = Namespace()
        ARCH_CONFIG_REGISTRY[f"{mos}_transformer_{task}"](args)
    settings = ("dropout", "attention_dropout", "share_all_embeddings", "extremes")
    assert {task: tuple(getattr(args, name) for name in settings) for task, args in found.items()} == {
        "wmt_en_de": (0.3, 0.1, True, "hat"),
        "iwslt_de_en": (0.375, 0.0, False, "hat"),
        "small": (0.1, 0.0, False, "space"),
    }
    own = Namespace(share_decoder_input_output_embed=True)
    ARCH_CONFIG_REGISTRY[f"{mos}_transformer_wmt_en_de"](own)
    assert not own.share_all_embeddings


def test_sharing_needs_one_dictionary(pair, corpus, space_file, tmp_path):
    assert len(pair.source_dictionary) == len(pair.target_dictionary)  # so that shapes alone do not tell
    training = [corpus, "--user-dir", USER_DIR, "--arch", "hat_transformer_wmt_en_de", "--search-space", space_file]
    training += ["--optimizer", "adam", "--batch-size", 4, "--max-update", 1, "--cpu", "--save-dir", tmp_path]
    done = run("train", *training, "--source-lang", "src", "--target-lang", "tgt")
    assert_one_line(done, "--arch hat_transformer_wmt_en_de", "--joined-dictionary", "--no-share-all-embeddings")
    done = run("train", *training, "--no-share-all-embeddings", "--no-save", "--disable-validation")
    assert done.code == 0, done.err


def test_importing_twice_is_harmless():
    for name in ("fairseq_ext.criterion", "fairseq_ext"):
        importlib.reload(importlib.import_module(name))
    for _ in range(2):
        utils.import_user_module.memo = set()
        utils.import_user_module(Namespace(user_dir=USER_DIR))


def test_space_and_subnet_are_written_into_the_settings(tmp_path, space_file, architecture_file):
    args = Namespace(search_space=str(space_file), subnet=str(architecture_file))
    assert resolve_space(args) == SPACE
    assert resolve_subnet(args, SPACE) == subnet()
    stored = Namespace(search_space_json=args.search_space_json, subnet_json=args.subnet_json)
    assert resolve_space(stored) == SPACE and resolve_subnet(stored, SPACE) == subnet()
    assert json.loads(args.search_space_json)["name"] == "tiny"


def test_unknown_space_and_foreign_subnet(tmp_path):
    with pytest.raises(UnknownChoiceError, match="Did you mean 'hat_small'"):
        resolve_space(Namespace(search_space="hat_smal"))
    with pytest.raises(DataError, match="no file"):
        resolve_space(Namespace(search_space=str(tmp_path / "none.yml")))
    get_space("hat_small").largest().save(tmp_path / "a.json")
    with pytest.raises(ArchitectureError, match="qkv_dim"):
        resolve_subnet(Namespace(subnet=str(tmp_path / "a.json")), SPACE)


def test_static_networks_have_no_experts(pair):
    args = Namespace(mos="neuron", left_pad_target="False")
    ARCH_CONFIG_REGISTRY["mos_transformer_small"](args)
    assert TRANSLATION.network_config(args, 1, static=True).mos.kind == "none"
    assert TRANSLATION.network_config(args, 1, static=False).mos.kind == "neuron"
    model = build(pair, subnet_json=json.dumps(subnet().to_dict()))
    assert model.space.cardinality() == 1 and not any("routers" in name for name, _ in model.named_parameters())


def test_padding_on_the_left_of_the_target_is_refused():
    args = Namespace(left_pad_target="True")
    ARCH_CONFIG_REGISTRY["mos_transformer_small"](args)
    with pytest.raises(ConfigError, match="--left-pad-target"):
        TRANSLATION.network_config(args, 1, static=False)


@pytest.mark.parametrize("option", ["fp16", "memory_efficient_fp16", "bf16", "memory_efficient_bf16", "amp"])
def test_half_precision_needs_cuda(pair, option):
    with pytest.raises(ConfigError, match=f"--{option.replace('_', '-')} needs a CUDA device"):
        compat.check_training(Namespace(cpu=True, **{option: True}))
    stored = build(pair, cpu=True, **{option: True})  # settings out of a checkpoint that was trained elsewhere
    assert stored.args.cpu


@pytest.mark.parametrize("backend", ["c10d", "pytorch_ddp"])
def test_workers_need_a_backend_that_allows_unused_weights(pair, backend):
    two = {"distributed_world_size": 2, "cpu": True}
    with pytest.raises(ConfigError, match=f"--ddp-backend {backend}.*legacy_ddp"):
        compat.check_training(Namespace(ddp_backend=backend, **two))
    compat.check_training(Namespace(ddp_backend="no_c10d", **two))
    compat.check_training(Namespace(ddp_backend=backend, distributed_world_size=1, cpu=True))


def test_errors_are_raised_outside_of_fairseqs_commands():
    with pytest.raises(ConfigError), compat.one_line_errors():
        raise ConfigError("wrong")


@pytest.mark.parametrize("program", ["/usr/bin/fairseq-train", "/lib/fairseq_cli/train.py"])
def test_errors_are_one_line_in_fairseqs_commands(program, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [program])
    with pytest.raises(SystemExit) as ended, compat.one_line_errors():
        raise ConfigError("wrong")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "nas-ext: error: wrong\n"


@pytest.mark.parametrize(("code", "told"), [(2, False), (1, True)])
def test_what_a_worker_has_said_is_not_said_again(monkeypatch, code, told):
    """On several GPUs fairseq starts a process for each, and torch tells how one of them ended."""
    seen = []
    monkeypatch.setattr("sys.argv", ["/usr/bin/fairseq-train"])
    monkeypatch.setattr("sys.excepthook", lambda *args: seen.append(args))
    compat.report_wrong_input()
    error = ProcessExitedException("process 0 terminated", error_index=0, error_pid=1, exit_code=code)
    sys.excepthook(type(error), error, None)
    assert bool(seen) == told
