"""Batches of texts, and comparison of features and sentence embeddings.

Shapes: B batch, T tokens, C channels, N sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from torch import Tensor
from transformers import (
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
)

from hf_ext.folder import TABLES, reason
from nas_core.errors import CheckpointError, DataError
from nas_core.optional import require

BATCH = 32
MAX_TOKENS = 128
"""Largest number of tokens of a text in calibration and evaluation; longer texts are truncated."""
_CHECKED = 200
"""Number of texts in which unknown tokens are counted."""
_MASKED = 0.15
_TIE = 1e-5
"""Difference of cosine similarities below which two texts are equally similar to a third."""


def open_tokenizer(folder: Path) -> Any:
    """Load the tokenizer of a model folder."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        tokenizer("text")
    except Exception as error:  # tokenizers raises Exception itself
        raise CheckpointError(
            f"the tokenizer in {folder} cannot be loaded ({reason(error)}); copy its files into the folder again"
        ) from None
    names = tokenizer.vocab_files_names.values()
    if not any((folder / name).is_file() for name in names):
        raise CheckpointError(f"{folder} has no tokenizer; copy its files ({', '.join(names)}) into the folder")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token_id is None:
        raise CheckpointError(f"the tokenizer in {folder} has no padding token; set one and save it there")
    return tokenizer


def batches_of(
    tokenizer: Any, texts: Sequence[str], config: Any, head: str, device: Any, size: int = BATCH, seed: int = 0
) -> list[dict[str, Tensor]]:
    """Return batches of tokens, with labels for a head.

    Args:
        config: configuration of the model.
        head: ``masked``: 15 % of the tokens are masked, the same each time; ``causal``: each token is a label;
            ``translation``: the labels are the text after the tab; ``class``: the label is the class after the tab;
            "": no labels.
        size: number of texts in a batch.
        seed: seed for masked tokens.
    """
    collate: Any = DataCollatorWithPadding(tokenizer)
    if head == "masked":
        collate = DataCollatorForLanguageModeling(tokenizer, mlm_probability=_MASKED, seed=seed)
    if head == "translation":
        collate = DataCollatorForSeq2Seq(tokenizer)
    max_length, batches = min(MAX_TOKENS, tokenizer.model_max_length), []
    vocabulary = max(config.vocab_size, getattr(config, "decoder_vocab_size", None) or 0)
    for start in range(0, len(texts), size):
        chunk = list(texts[start : start + size])
        inputs: dict[str, Any] = {"text": chunk}
        if head in TABLES:
            sources, targets = zip(*(text.rsplit("\t", 1) for text in chunk), strict=True)
            inputs = {"text": list(sources)} | ({"text_target": list(targets)} if head == "translation" else {})
        tokens = tokenizer(**inputs, truncation=True, max_length=max_length)
        rows = [{"input_ids": row, "attention_mask": [1] * len(row)} for row in tokens["input_ids"]]
        if head == "translation":
            rows = [{**row, "labels": labels} for row, labels in zip(rows, tokens["labels"], strict=True)]
        batch = collate(rows)
        if (largest := max(int(batch[name].max()) for name in ("input_ids", "labels") if name in batch)) >= vocabulary:
            raise CheckpointError(
                f"the tokenizer returned token {largest}, but the model has {vocabulary} token embeddings; use the"
                " tokenizer that the model was trained with"
            )
        if head == "class":
            batch["labels"] = torch.tensor([*map(_classes_of(config).__getitem__, targets)])
        if head == "causal":
            batch["labels"] = batch["input_ids"].where(batch["attention_mask"].bool(), -100)
        batches.append({name: tensor.to(device) for name, tensor in batch.items()})
    return batches


def check_texts(tokenizer: Any, texts: Sequence[str], config: Any, head: str) -> None:
    """Raise an error if most tokens of the texts are unknown, or if a text's class is not one of the model's."""
    ids = [token for row in tokenizer(list(texts[:_CHECKED]))["input_ids"] for token in row]
    if tokenizer.unk_token_id is not None and ids.count(tokenizer.unk_token_id) > len(ids) / 2:
        raise CheckpointError(
            f"most tokens of the texts are unknown to the tokenizer, such as those of {texts[0][:60]!r}; use the"
            " tokenizer that the model was trained with, or other texts"
        )
    if head == "class":
        classes, names = _classes_of(config), [text.rsplit("\t", 1)[1] for text in texts]
        if unknown := [name for name in names if name not in classes]:
            raise DataError(
                f"{len(unknown)} texts have a class such as {unknown[0]!r}, which the model does not have; expected"
                f" one of {', '.join(classes)}"
            )


def _classes_of(config: Any) -> dict[str, int]:
    """Return name or number of a class -> its index."""
    names = {str(index): index for index in range(config.num_labels)}
    names |= {str(name): int(index) for index, name in (config.id2label or {}).items()}
    return names | {str(name): int(index) for name, index in (config.label2id or {}).items()}


def head_of(model: Any) -> str:
    """Return the head for which data has labels: ``masked``, ``causal``, ``translation``, ``class`` (of texts),
    ``image`` or "".
    """
    if type(model).__name__.endswith("ForSequenceClassification"):
        config = model.config
        single = config.num_labels > 1 and config.problem_type in (None, "single_label_classification")
        return "class" if single else ""
    heads = {
        "ForMaskedLM": "masked",
        "ForCausalLM": "causal",
        "MTModel": "translation",
        "ForImageClassification": "image",
    }
    return next((head for ending, head in heads.items() if type(model).__name__.endswith(ending)), "")


def bleu(model: Any, tokenizer: Any, batches: Sequence[Mapping[str, Tensor]], references: Sequence[str]) -> float:
    """Return sacrebleu's BLEU (0 to 100) of translations by ``generate``, with the model's ``generation_config``."""
    sacrebleu, translations = require("sacrebleu", "the metric bleu", "hf"), list[str]()
    for batch in batches:
        tokens = model.generate(batch["input_ids"], attention_mask=batch["attention_mask"])
        translations += tokenizer.batch_decode(tokens, skip_special_tokens=True)
    return float(sacrebleu.corpus_bleu(translations, [list(references)]).score)


def mean_pooled(features: Tensor, mask: Tensor) -> Tensor:
    """Return the mean (B, C) of features (B, T, C) over the tokens where ``mask`` (B, T) is 1."""
    weights = mask[..., None].to(features.dtype)
    return (features * weights).sum(1) / weights.sum(1).clamp(min=1)


def similarities(embeddings: Tensor) -> Tensor:
    """Return the pairwise cosine similarities (N, N) of embeddings (N, C)."""
    unit = F.normalize(embeddings.float(), dim=-1)
    return unit @ unit.T


def agreement(embeddings: Tensor, teacher: Tensor) -> dict[str, float]:
    """Return the agreement of two models' sentence embeddings (N, C), 1 for equal ones.

    - ``spearman``: Spearman's correlation of the cosine similarities of all pairs of sentences.
    - ``retrieval``: share of sentences whose most similar other sentence is the same.
    """
    rows, columns = torch.triu_indices(len(teacher), len(teacher), 1)
    student, target = (similarities(x) for x in (embeddings, teacher))
    pairs = [matrix[rows, columns].cpu().numpy() for matrix in (student, target)]
    nearest = student.fill_diagonal_(-torch.inf).argmax(1, keepdim=True)
    target.fill_diagonal_(-torch.inf)
    right = target.gather(1, nearest)[:, 0] > target.max(1).values - _TIE
    return {"spearman": float(spearmanr(*pairs).statistic), "retrieval": float(right.double().mean())}


def feature_loss(features: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
    """Return the distance between features (B, T, C) and a teacher's features (B, T, C'), where C' >= C.

    The distance is a sum of three means: 1 - cosine similarity to the teacher's first C channels, for tokens and for
    sentence embeddings, and the squared difference of the sentences' pairwise cosine similarities.
    """
    valid = mask.bool()
    target_features = teacher[..., : features.shape[-1]]
    tokens = 1 - F.cosine_similarity(features[valid], target_features[valid], dim=-1).mean()
    pooled, target = mean_pooled(features, mask), mean_pooled(teacher, mask)
    sentences = 1 - F.cosine_similarity(pooled, target[:, : pooled.shape[-1]], dim=-1).mean()
    return tokens + sentences + F.mse_loss(similarities(pooled), similarities(target))


def retrieval_loss(features: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
    """Return the InfoNCE loss of sentence embeddings (means of features (B, T, C) where ``mask`` (B, T) is 1).

    The positive of each sentence is the teacher's embedding.
    """
    # Unlike feature_loss, it has a gradient where both networks agree.
    pooled, target = (F.normalize(mean_pooled(x, mask), dim=-1) for x in (features, teacher))
    return F.cross_entropy(pooled @ target.T / 0.1, torch.arange(len(pooled), device=pooled.device))
