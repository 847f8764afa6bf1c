"""Whether a supernet's estimates hold: translation, encoders, and what each study says of a small supernet."""

from benchmarks.page.sections.trust import bert, studies, translation

__all__ = ["SECTIONS"]

SECTIONS = [*translation.SECTIONS, *bert.SECTIONS, *studies.SECTIONS]
