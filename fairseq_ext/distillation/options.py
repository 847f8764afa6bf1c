"""Options of training with a teacher, the same for every criterion.

Annotations are not postponed in this module: fairseq reads the options from the field types.
"""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass

from nas_core.errors import ConfigError
from nas_core.options import check_ranges
from nas_core.supernet.teacher.losses import DISTILLATION_RANGES

LARGEST = "largest"
"""The teacher that is the largest subnet of the sandwich."""
_CACHED_WORDS = 32
"""Words that a cache keeps of each token unless told otherwise."""


@dataclass
class DistillationConfig(FairseqDataclass):  # type: ignore[misc]
    """Options that the criteria of a teacher have beside those of their own loss."""

    teacher: Optional[str] = field(  # noqa: UP045  fairseq reads this form
        default=None,
        metadata={
            "help": "what to learn from: the checkpoint of a model of the same task and dictionaries (of a supernet,"
            " its largest subnet), or 'largest': in sandwich sampling the largest subnet teaches the others"
        },
    )
    distill_weight: float = field(
        default=0.5, metadata={"help": "share of the teacher's loss; the own loss has the rest of 1"}
    )
    distill_temperature: float = field(
        default=1.0, metadata={"help": "both networks' logits are divided by it before they are compared"}
    )
    distill_hidden: float = field(
        default=0.0,
        metadata={
            "help": "weight of the difference between the hidden states that layers of both read, where teacher and"
            " student come from one 'nas-ext elastic'"
        },
    )
    distill_attention: float = field(default=0.0, metadata={"help": "the same of what their attentions give"})
    teacher_cache: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "folder in which the teacher's most probable words of each training token are kept"},
    )
    teacher_top_k: int = field(
        default=0,
        metadata={
            "help": "words of each token that are compared, all others as one; 0: all of them,"
            f" with --teacher-cache {_CACHED_WORDS}"
        },
    )


def check_options(options: Any) -> None:
    """Check what can be told before any file is read, and fill in what depends on other options.

    Raises:
        ConfigError: an option, or a combination of them, that cannot work.
    """
    if not options.teacher:
        raise ConfigError("this criterion learns from a teacher; give --teacher FILE or --teacher largest, or take a"
                          " criterion without one")  # fmt: skip
    check_ranges(options, DISTILLATION_RANGES)
    if not options.teacher_cache:
        return
    if options.teacher == LARGEST:
        raise ConfigError("--teacher-cache keeps what a fixed teacher says, and --teacher largest changes with every"
                          " update; drop one of them")  # fmt: skip
    if options.distill_hidden or options.distill_attention:
        raise ConfigError("--teacher-cache keeps probabilities, neither hidden states nor attention; drop it, or"
                          " --distill-hidden and --distill-attention")  # fmt: skip
    options.teacher_top_k = options.teacher_top_k or _CACHED_WORDS
