"""Registered architectures and what their options mean."""

import importlib
import sys
from argparse import Namespace

import pytest
import torch
from fairseq import utils
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from torch.multiprocessing import ProcessExitedException

from fairseq_ext import compat
from fairseq_ext.families import TRANSLATION
from fairseq_ext.model import TranslationModel
from fairseq_ext.supernet_model import SupernetModel, resolve_subnet
from nas_core.cli.space import MODELS
from nas_core.errors import ArchitectureError, ConfigError, DataError, UnknownChoiceError
from nas_core.space import get_space
from tests.fairseq_ext.running import SPACE, USER_DIR, assert_one_line, build, run

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


def test_architectures_fill_in_missing_options():
    assert {name for name, model in ARCH_MODEL_REGISTRY.items() if model is TranslationModel} == set(ARCHITECTURES)
    for name, (mos, space) in ARCHITECTURES.items():
        args = Namespace(dropout=0.25)
        ARCH_CONFIG_REGISTRY[name](args)
        assert (args.mos, args.search_space, args.dropout) == (mos, space, 0.25)
    args = Namespace(mos="layer", search_space="mine.yml")
    ARCH_CONFIG_REGISTRY["mformer_wmt14_en_de"](args)
    assert (args.mos, args.search_space) == ("layer", "mine.yml")


def test_presets_of_the_papers_train_as_their_code_does():
    settings = {}
    for task in ("wmt_en_de", "iwslt_de_en", "small"):
        args = Namespace()
        ARCH_CONFIG_REGISTRY[f"mos_transformer_{task}"](args)
        settings[task] = args.dropout, args.attention_dropout, args.share_all_embeddings, args.extremes
    assert settings == {
        "wmt_en_de": (0.3, 0.1, True, "hat"),
        "iwslt_de_en": (0.375, 0.0, False, "hat"),
        "small": (0.1, 0.0, False, "space"),
    }
    own = Namespace(share_decoder_input_output_embed=True)
    ARCH_CONFIG_REGISTRY["mos_transformer_wmt_en_de"](own)
    assert not own.share_all_embeddings


def test_sharing_needs_one_dictionary(pair, corpus, space_file, tmp_path):
    assert len(pair.source_dictionary) == len(pair.target_dictionary)  # so that shapes alone do not tell
    training = [corpus, "--user-dir", USER_DIR, "--arch", "hat_transformer_wmt_en_de", "--search-space", space_file]
    training += ["--optimizer", "adam", "--batch-size", 4, "--max-update", 1, "--cpu", "--save-dir", tmp_path]
    done = run("train", *training, "--source-lang", "src", "--target-lang", "tgt")
    assert_one_line(done, "--joined-dictionary", "--no-share-all-embeddings")


def test_importing_twice_is_harmless():
    for name in ("fairseq_ext.criterion", "fairseq_ext"):
        importlib.reload(importlib.import_module(name))
    for _ in range(2):
        utils.import_user_module.memo = set()
        utils.import_user_module(Namespace(user_dir=USER_DIR))


def test_trainings_that_are_rejected(pair, tmp_path, monkeypatch):
    def filled_in(name, **options):
        args = Namespace(**options)
        ARCH_CONFIG_REGISTRY[name](args)
        return args

    get_space("hat_small").largest().save(tmp_path / "a.json")
    two = {"distributed_world_size": 2, "cpu": True}
    padded = filled_in("mos_transformer_small", left_pad_target="True")
    for call, kind in [
        (lambda: TranslationModel.resolve_space(Namespace(search_space="hat_smal")), UnknownChoiceError),
        (lambda: TranslationModel.resolve_space(Namespace(search_space=str(tmp_path / "none.yml"))), DataError),
        (lambda: resolve_subnet(Namespace(subnet=str(tmp_path / "a.json")), SPACE), ArchitectureError),
        (lambda: TRANSLATION.network_config(padded, 1, False), ConfigError),
        (lambda: compat.check_training(Namespace(cpu=True, fp16=True)), ConfigError),
        (lambda: compat.check_training(Namespace(cpu=True, memory_efficient_bf16=True)), ConfigError),
        (lambda: compat.check_training(Namespace(ddp_backend="c10d", **two)), ConfigError),
    ]:
        with pytest.raises(kind) as error:
            call()
        assert "\n" not in str(error.value)
    for accepted in ({"ddp_backend": "no_c10d", **two}, {"ddp_backend": "c10d", "cpu": True}):
        compat.check_training(Namespace(**accepted))
    assert build(pair, cpu=True, fp16=True).args.cpu  # settings out of a checkpoint that was trained elsewhere
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    args = Namespace(distributed_world_size=2, ddp_backend="pytorch_ddp")
    with pytest.raises(ConfigError, match="--find-unused-parameters"):
        compat.check_training(args)
    args.find_unused_parameters = True
    compat.check_training(args)


@pytest.mark.parametrize("program", ["/usr/bin/fairseq-train", "/lib/fairseq_cli/train.py", "/usr/bin/python"])
def test_errors_are_one_line_in_fairseqs_commands(program, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [program])
    of_fairseq = "fairseq" in program
    with pytest.raises(SystemExit if of_fairseq else ConfigError) as ended, compat.one_line_errors():
        raise ConfigError("wrong")
    if of_fairseq:
        assert ended.value.code == 2
        assert capsys.readouterr().err == "nas-ext: error: wrong\n"


@pytest.mark.parametrize(("code", "printed"), [(2, False), (1, True)])
def test_the_error_of_a_worker_is_not_repeated(monkeypatch, code, printed):
    """On several GPUs fairseq starts a process for each, and torch reports how one of them ended."""
    recorded = []
    monkeypatch.setattr("sys.argv", ["/usr/bin/fairseq-train"])
    monkeypatch.setattr("sys.excepthook", lambda *args: recorded.append(args))
    compat.report_wrong_input()
    error = ProcessExitedException("process 0 terminated", error_index=0, error_pid=1, exit_code=code)
    sys.excepthook(type(error), error, None)
    assert bool(recorded) == printed
