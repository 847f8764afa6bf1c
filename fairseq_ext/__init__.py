"""fairseq plug-in: ``fairseq-train DATA --user-dir "$(nas-ext user-dir)" --arch mos_transformer ...``.

Importing this package registers the models and tasks with fairseq. It translates between fairseq and ``nas_core``; what
is computed lives there.
"""

from fairseq_ext import compat

compat.prepare_fairseq()
compat.report_wrong_input()

from fairseq_ext import batching, criterion, distillation, language, masked_lm, model, task, workers  # noqa: E402  registration needs a fairseq that can load its own checkpoints

batching.keep_all_sentences()
workers.read_checkpoints_on_every_worker()
workers.tell_of_dummy_batches()

__all__ = ["batching", "compat", "criterion", "distillation", "language", "masked_lm", "model", "task", "workers"]
