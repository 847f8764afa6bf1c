"""Options of ``nas-ext latency collect`` that say what is run while the clock runs; each is of one kind of network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nas_core.errors import ConfigError, unknown_choice
from nas_core.models.image import ImageWorkloadConfig
from nas_core.models.kind import ModelKind
from nas_core.models.language import LanguageWorkloadConfig
from nas_core.models.masked_lm import MaskedLMWorkloadConfig
from nas_core.models.translation import TranslationWorkloadConfig
from nas_core.options import flag_of, options_of
from nas_core.space import SearchSpace
from nas_core.supernet.host import vocabularies

__all__ = [
    "Batch",
    "Beam",
    "Channels",
    "Classes",
    "Data",
    "NewTokens",
    "PromptLength",
    "Settings",
    "SourceLength",
    "SourceVocab",
    "TargetLength",
    "TargetVocab",
    "Vocab",
    "task_settings",
    "workload_config",
    "workload_settings",
]

_TRANSLATION, _IMAGE = TranslationWorkloadConfig(), ImageWorkloadConfig()
_LANGUAGE, _MASKED_LM = LanguageWorkloadConfig(), MaskedLMWorkloadConfig()


def _number(help: str) -> Any:
    return typer.Option(min=1, help=help, show_default=False)


Data = Annotated[
    Path | None,
    typer.Option(
        help="Text: folder of fairseq-preprocess, whose dictionaries say the size of vocabularies; with --checkpoint"
        " only if it moved since training."
    ),
]
Vocab = Annotated[
    int | None,
    _number(
        "Entries of the vocabulary, of translation of both, special ones included; default"
        f" {_TRANSLATION.source_vocab} of translation, {_LANGUAGE.vocab} of language models, {_MASKED_LM.vocab} of"
        " masked ones."
    ),
]
SourceVocab = Annotated[int | None, _number("Translation: entries of the source vocabulary.")]
TargetVocab = Annotated[int | None, _number("Translation: entries of the target vocabulary.")]
SourceLength = Annotated[
    int | None, _number(f"Translation: words of the sentence; default {_TRANSLATION.source_length}.")
]
TargetLength = Annotated[int | None, _number(f"Translation: decoder steps; default {_TRANSLATION.target_length}.")]
Beam = Annotated[int | None, _number(f"Translation: hypotheses at a time; default {_TRANSLATION.beam}.")]
PromptLength = Annotated[
    int | None, _number(f"Language models: tokens read before decoding is timed; default {_LANGUAGE.prompt_length}.")
]
NewTokens = Annotated[int | None, _number(f"Language models: decoding steps; default {_LANGUAGE.new_tokens}.")]
Batch = Annotated[int | None, _number(f"Images or sequences at a time; default {_IMAGE.batch}.")]
Classes = Annotated[
    int | None,
    _number(
        f"Images: classes of the classifier; default {_IMAGE.classes}. Masked language models: classes of a"
        " classification head, which is then timed in place of that of tokens."
    ),
]
Channels = Annotated[int | None, _number(f"Images: channels; default {_IMAGE.channels}.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="NAME=VALUE of the workload of another kind of network; repeatable."),
]


def workload_settings(kind: ModelKind, typed: Sequence[str], before: Mapping[str, Any], option: str) -> dict[str, Any]:
    """Settings of the workload of a kind of network, ``before`` with those that are typed as ``NAME=VALUE``.

    Raises:
        ConfigError: one that the workload does not have, a value of another type, or no ``NAME=VALUE``.
    """
    own = {each.name: each for each in options_of(kind.workload_config)}
    settings = dict(before)
    for text in typed:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ConfigError(f"{option} {text}: expected NAME=VALUE, such as {next(iter(own), 'x')}=2")
        if name not in own:
            raise unknown_choice(f"setting of the workload of {kind.name} networks", name, own)
        settings[name] = own[name].read(value)
    kind.config(settings)
    return settings


def workload_config(
    kind: ModelKind,
    space: SearchSpace,
    data: Path | None,
    given: Mapping[str, Any],
    settings: Sequence[str],
    task: Mapping[str, Any],
) -> Any:
    """Settings of the workload of a space's kind of network.

    Args:
        data: a folder whose dictionaries say the sizes of vocabularies.
        given: option -> value, None where it is not given; ``vocab`` stands for both vocabularies.
        settings: ``NAME=VALUE``.
        task: :attr:`nas_core.supernet.host.Supernet.task`, which gives what is not given here.

    Raises:
        ConfigError: an option that this kind's workload does not have, or two that say the same.
    """
    options = {name: value for name, value in given.items() if value is not None}
    own_options = {option.name: option for option in options_of(kind.workload_config)}
    said = {**options, **({} if data is None else {"data": data})}
    known = {*own_options, *(("vocab", "data") if kind.vocabularies else ())}
    if wrong := next((name for name in said if name not in known), None):
        own = ", ".join(flag_of(name) if name in given else f"--set {name}=.." for name in own_options)
        raise ConfigError(
            f"{flag_of(wrong)} is no option of the workload of {kind.name} networks, which space"
            f" {space.name!r} holds; it has {own or 'none'}"
        )
    if data is not None:
        if options.keys() & {"vocab", *kind.vocabularies}:
            raise ConfigError("give --data or the sizes --vocab, --source-vocab, --target-vocab, not both")
        options |= zip(kind.vocabularies, vocabularies(data)[-len(kind.vocabularies) :], strict=True)
    if "vocab" not in own_options and (both := options.pop("vocab", None)) is not None:
        options = {**dict.fromkeys(kind.vocabularies, both), **options}
    for text in settings:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name in options:
            example = next(iter(own_options), "x")
            raise ConfigError(f"--set {text}: expected NAME=VALUE, each name once, such as {example}=2")
        options[name] = own_options[name].read(value) if name in own_options else value
    return kind.config({**task_settings(kind, task), **options})


def task_settings(kind: ModelKind, task: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the workload of a kind of network that a supernet's task gives."""
    names = {option.name for option in options_of(kind.workload_config)}
    return {name: value for name, value in task.items() if name in names}
