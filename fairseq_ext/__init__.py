"""fairseq plug-in: ``fairseq-train DATA --arch mos_transformer ...``.

Importing this package registers models, tasks and criteria with fairseq. fairseq's commands import it at startup; if
nas-ext is not installed with pip, add ``--user-dir "$(nas-ext lab user-dir)"``.
"""

from fairseq_ext import compat

compat.prepare_fairseq()
compat.report_wrong_input()

from fairseq_ext import criterion, distillation, language, masked_lm, model, patches, task  # noqa: E402, F401  fairseq must be prepared before

if compat.is_named():  # otherwise the models and criteria call it, and fairseq trains its own models unchanged
    patches.keep_all_sentences()
patches.read_checkpoints_on_every_worker()
