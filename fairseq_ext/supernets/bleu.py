"""BLEU of a network's own translations, by fairseq's beam search."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import torch

from fairseq_ext.data import options_of
from nas_core.optional import require

_BEAM = 5
"""The default of ``fairseq-generate``."""


def bleu(task: Any, model: Any, batches: Sequence[dict[str, Any]]) -> float:
    """sacrebleu's BLEU, 0 to 100, of the translations of batches that have targets.

    Beam and length penalty are 5 and 1, or what ``--eval-bleu-args`` of the training says. Subwords are joined where
    the dictionary has such (``@@`` or ``▁``), or as ``--eval-bleu-remove-bpe`` says. Where ``--eval-bleu-detok`` makes
    plain text of words, or sentencepiece does, BLEU is of sacrebleu's own tokens (13a), else of the words as they are.

    Args:
        model: in evaluation mode, holding the subnet that translates.
    """
    sacrebleu = require("sacrebleu", "the metric bleu", "fairseq")
    from fairseq import utils
    from fairseq.data import encoders

    given, words = options_of(task), task.target_dictionary
    joined = getattr(given, "eval_bleu_remove_bpe", None) or _subwords(words.symbols)
    detok = getattr(given, "eval_bleu_detok", "space") or "space"
    arguments = json.loads(getattr(given, "eval_bleu_detok_args", None) or "{}")
    tokenizer = encoders.build_tokenizer(Namespace(tokenizer=detok, **arguments))
    tokenised = getattr(given, "eval_tokenized_bleu", False) or (detok == "space" and joined != "sentencepiece")
    options = {"beam": _BEAM, **json.loads(getattr(given, "eval_bleu_args", None) or "{}")}
    generator = task.build_generator([model], Namespace(**options))

    def text(tokens: torch.Tensor, unknown: str) -> str:
        found = words.string(tokens.int().cpu(), joined, unk_string=unknown)
        return str(tokenizer.decode(found)) if tokenizer is not None else str(found)

    translations, references = [], []
    with torch.no_grad():
        for batch in batches:
            best = [each[0]["tokens"] for each in task.inference_step(generator, [model], batch)]
            translations += [text(tokens, "UNKNOWN") for tokens in best]
            targets = [utils.strip_pad(target, words.pad()) for target in batch["target"]]
            references += [text(tokens, "NOREFERENCE") for tokens in targets]  # unknown words are never the same
    return float(sacrebleu.corpus_bleu(translations, [references], tokenize="none" if tokenised else "13a").score)


def _subwords(symbols: Sequence[str]) -> str | None:
    """How the words of a dictionary are joined, by fairseq's names; None: they are whole."""
    if any(symbol.startswith("\u2581") for symbol in symbols):
        return "sentencepiece"
    return "subword_nmt" if any(symbol.endswith("@@") for symbol in symbols) else None
