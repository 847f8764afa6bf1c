"""Short sentences of the English-German grammar with few words, for small networks and few updates."""

from __future__ import annotations

import random
from dataclasses import replace

from fairseq_ext.quickstart.language.draw import Draw
from fairseq_ext.quickstart.language.grammar import Pair, distinct, fronted, tidy
from fairseq_ext.quickstart.language.lexicon import ADJECTIVES, Adjective, Noun, nouns_of
from fairseq_ext.quickstart.language.phrases import Phrase
from fairseq_ext.quickstart.language.verbs import VERBS

__all__ = ["ShortDraw", "short_corpus"]

NOUNS_OF_A_KIND = 3
LONGEST = 9
"""Words of a sentence at most."""
_VERBS = [verb for frame, most in (("transitive", 8), ("intransitive", 4)) for verb in VERBS[frame][:most]]
_FEW_ADJECTIVES = ADJECTIVES[:6]


class ShortDraw(Draw):
    """Draws phrases of the first nouns of each kind, without numbers and without clauses inside."""

    def noun(self, kinds: tuple[str, ...], against: tuple[str, ...] = (), avoid: tuple[Noun, ...] = ()) -> Noun:
        each = (nouns_of((kind,), against)[:NOUNS_OF_A_KIND] for kind in kinds)
        return self.rng.choice([noun for nouns in each for noun in nouns if noun not in avoid])

    def phrase(
        self,
        kinds: tuple[str, ...],
        against: tuple[str, ...] = (),
        avoid: tuple[Noun, ...] = (),
        depth: int = 0,
        plural: float = 0.3,
    ) -> Phrase:
        phrase = super().phrase(kinds, against, avoid, 0, plural)
        return replace(phrase, number=0, determiner="the") if phrase.number else phrase

    def adjectives(self, noun: Noun, count: int) -> list[Adjective]:
        return [one for one in super().adjectives(noun, count) if one in _FEW_ADJECTIVES][:1]

    def pair_of_sentences(self) -> Pair:
        """One main clause in both languages."""
        verb = self.rng.choice(_VERBS)
        clause = self.fill(verb, self.subject(verb.subjects, depth=0), "", 0, 0.4)
        english, german = fronted(self, replace(clause, manner="", often=""))
        return tidy(english, "."), tidy(german, ".")


def short_corpus(sizes: dict[str, int], seed: int = 1) -> dict[str, list[Pair]]:
    """Splits of the given sizes; no English sentence is in two of them, and none comes twice."""
    stream = distinct(ShortDraw(random.Random(seed)).pair_of_sentences, LONGEST)
    return {name: [next(stream) for _ in range(size)] for name, size in sizes.items()}
