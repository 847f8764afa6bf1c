"""fairseq plug-in: ``fairseq-train DATA --arch mos_transformer ...``.

Importing this package registers the models and tasks with fairseq; fairseq's commands do where nas-ext is installed
(:mod:`nas_core.startup`), and with ``--user-dir "$(nas-ext lab user-dir)"``. It translates between fairseq and
``nas_core``; what is computed lives there.
"""

from fairseq_ext import compat

compat.prepare_fairseq()
compat.report_wrong_input()

from fairseq_ext import batching, criterion, distillation, language, masked_lm, model, task, workers  # noqa: E402  registration needs a fairseq that can load its own checkpoints

if compat.is_named():  # else its models and criteria call it, and fairseq's own are trained as fairseq trains them
    batching.keep_all_sentences()
workers.read_checkpoints_on_every_worker()
workers.tell_of_dummy_batches()

__all__ = ["batching", "compat", "criterion", "distillation", "language", "masked_lm", "model", "task", "workers"]
