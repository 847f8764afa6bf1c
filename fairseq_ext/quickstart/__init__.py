"""What ``nas-ext quickstart translation`` writes: a small parallel corpus, drawn from a grammar, and a script."""

from fairseq_ext.quickstart.translation import TRANSLATION, TranslationQuickstart

__all__ = ["TRANSLATION", "TranslationQuickstart"]
