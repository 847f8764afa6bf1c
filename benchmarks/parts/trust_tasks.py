"""Tasks on which supernets are compared with networks trained from scratch: data, search space and training options."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.published import DATA
from fairseq_ext.quickstart.corpus import corpus
from nas_core.space import SearchSpace, get_space
from nas_core.space.files import save_space, space_from_dict, space_to_dict
from nas_core.space.hat import translation_space
from nas_core.space.language import language_space

_TRANSLATION = (
    "--task", "supernet_translation", "--arch", "mos_transformer", "--share-all-embeddings", "--criterion",
    "fused_label_smoothed_cross_entropy", "--label-smoothing", 0.1,
)  # fmt: skip
_DISTILLED = "distilled_label_smoothed_cross_entropy"
_EXTRACTED = ("--task", "translation", "--arch", "hat_transformer", "--lr", 1e-3)


@dataclass(frozen=True)
class TrustTask:
    """Corpus, search space, and training options of supernets and networks."""

    name: str
    space: Callable[[], SearchSpace]
    options: tuple[object, ...]
    """Options of ``fairseq-train``."""
    extracted: tuple[object, ...]
    """Options that replace some of them for the training of an extracted network."""
    distilled: str
    """Criterion with a teacher."""
    updates: int
    write: Callable[[Path], object] | None
    """Function that writes ``train``, ``valid`` and ``test`` as text to a folder; None: the data are given."""
    metrics: tuple[str, ...] = ()
    """Metrics of the paper, computed besides the loss."""

    def space_in(self, work: Path) -> SearchSpace:
        """Write the space's file if it is missing; return the space."""
        path = work / f"{self.name}.yml"
        if not path.exists():
            save_space(self.space(), path)
        return get_space(str(path))

    def data_in(self, work: Path, given: Path | None) -> Path:
        """Return the folder of ``fairseq-preprocess``; create it on first use."""
        if self.write is None:
            if given is None:
                raise SystemExit(
                    f"task {self.name} needs --bin; give a folder of fairseq-preprocess with a joined dictionary"
                )
            return given
        text, folder = work / f"{self.name}-text", work / f"{self.name}-bin"
        if not folder.exists():
            text.mkdir(parents=True, exist_ok=True)
            self.write(text)
            languages = ("-s", "en", "-t", "de", "--joined-dictionary") if self.metrics else ("--only-source",)
            suffix = "" if self.metrics else ".txt"
            parts = [f"--{split}pref={text / split}{suffix}" for split in ("train", "valid", "test")]
            program = Path(sys.executable).parent / "fairseq-preprocess"
            subprocess.run([program, *languages, *parts, "--destdir", folder], check=True, stdout=subprocess.DEVNULL)
        return folder


def tiny_translation() -> SearchSpace:
    """Return translation networks of 30,000 to 180,000 parameters that attend to the last encoder layer only."""
    space = translation_space(
        "tiny_translation", embed_dims=(64, 32), ffn_dims=(256, 64, 16), heads=(4, 2), encoder_layers=(2,),
        decoder_layers=(2, 1), qkv_dim=64,
    )  # fmt: skip
    content = space_to_dict(space)
    content["choices"]["decoder.arbitrary_cross"] |= {"options": [-1], "codes": [[-1, 1.0]]}
    return space_from_dict(content)


def tiny_language() -> SearchSpace:
    return language_space(
        "tiny_language", layers=(3, 2, 1), embed_dims=(64, 32), ffn_dims=(256, 64, 16), heads=(4, 2), head_dim=16,
        context_length=128,
    )  # fmt: skip


def _write_sentences(folder: Path) -> None:
    for split, pairs in corpus({"train": 120_000, "valid": 500, "test": 500}).items():
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")


def _write_characters(folder: Path) -> None:
    with gzip.open(DATA / "tinyshakespeare.txt.gz", "rt", encoding="utf-8") as file:
        text = file.read()
    ends = [0, len(text) * 8 // 10, len(text) * 9 // 10, len(text)]
    for split, start, end in zip(("train", "valid", "test"), ends, ends[1:], strict=False):
        lines = (" ".join(line.replace(" ", "_")) for line in text[start:end].splitlines())
        (folder / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


TASKS = {
    task.name: task
    for task in (
        TrustTask(
            "generated", tiny_translation, (*_TRANSLATION, "--dropout", 0, "--lr", 3e-3, "--max-tokens", 1024),
            _EXTRACTED, _DISTILLED, 2000, _write_sentences, ("bleu",),
        ),
        TrustTask(
            "characters", tiny_language,
            ("--task", "supernet_language_modeling", "--arch", "mos_transformer_lm", "--criterion", "cross_entropy",
             "--sample-break-mode", "none", "--tokens-per-sample", 128, "--dropout", 0, "--lr", 3e-3, "--max-tokens",
             2048),
            ("--task", "language_modeling", "--arch", "hat_transformer_lm", "--lr", 1e-3), "distilled_cross_entropy",
            2000, _write_characters,
        ),
        TrustTask(
            "multi30k", tiny_translation,
            (*_TRANSLATION, "--dropout", 0.1, "--lr", 3e-3, "--max-tokens", 4096), _EXTRACTED, _DISTILLED, 1400, None,
            ("bleu",),
        ),
    )
}  # fmt: skip
