"""Noun phrases: one tree, written out in English and in German for any case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairseq_ext.quickstart.language import german
from fairseq_ext.quickstart.language.lexicon import EINS, ONES, TENS, Adjective, Noun

if TYPE_CHECKING:
    from fairseq_ext.quickstart.language.clauses import Clause

DETERMINERS = {  # English -> German stem; "" has no article, a number is written out
    "the": "der", "a": "ein", "this": "dies", "every": "jed", "no": "kein", "many": "viel", "": "",
    "my": "mein", "our": "unser", "his": "sein", "her": "ihr", "their": "ihr",
}  # fmt: skip
_ENGLISH_PRONOUNS = {
    "1s": ("I", "me", "myself"), "1p": ("we", "us", "ourselves"), "m": ("he", "him", "himself"),
    "f": ("she", "her", "herself"), "n": ("it", "it", "itself"), "pl": ("they", "them", "themselves"),
}  # fmt: skip


@dataclass(frozen=True)
class Relative:
    """A relative clause; ``clause`` lacks the phrase whose ``case`` the pronoun takes (nom: its subject)."""

    clause: Clause
    case: str


@dataclass(frozen=True)
class Phrase:
    """A noun phrase, or a pronoun when ``noun`` is missing."""

    noun: Noun | None = None
    plural: bool = False
    determiner: str = ""
    number: int = 0
    adjectives: tuple[Adjective, ...] = ()
    owner: Phrase | None = None
    partner: Phrase | None = None
    """*the man and the woman*: the phrase after *and*."""
    relative: Relative | None = None
    pronoun: str = ""
    """``1s``, ``1p``, ``m``, ``f``, ``n``, ``pl``, or ``self`` for the reflexive."""
    thing: bool = False
    """A pronoun for a thing: *it* in English, by gender in German."""

    @property
    def form(self) -> str:
        if self.noun is None:
            return self.pronoun
        return "pl" if self.plural else self.noun.gender

    @property
    def person(self) -> str:
        if self.form in ("1s", "1p"):
            return self.form
        return "3p" if self.form == "pl" or self.partner else "3s"

    @property
    def indefinite(self) -> bool:
        bare = self.determiner == "a" or (not self.determiner and not self.number)
        return self.noun is not None and self.partner is None and bare

    def english(self, case: str = "nom", subject: Phrase | None = None) -> str:
        """``subject`` is what a reflexive pronoun refers back to."""
        if self.noun is None:
            if self.pronoun == "self":
                return _ENGLISH_PRONOUNS[english_form(subject)][2]
            return _ENGLISH_PRONOUNS[english_form(self)][case != "nom"]
        words = [self._english_determiner(), english_number(self.number)]
        words += [a.en for a in self.adjectives] + [self.noun.en_plural if self.plural else self.noun.en]
        text = " ".join(word for word in words if word)
        if self.determiner == "a":
            text = ("an " if text[0] in "aeiou" else "a ") + text
        if self.owner:
            text += " of " + self.owner.english("acc")
        if self.relative:
            who = "who" if self.noun.kind == "person" else "which"
            text += f" {who} {self.relative.clause.english_relative(self)}"
        return f"{text} and {self.partner.english(case)}" if self.partner else text

    def _english_determiner(self) -> str:
        if self.determiner == "a":
            return ""
        return "these" if self.determiner == "this" and self.plural else self.determiner

    def german(self, case: str, subject: Phrase | None = None, negated: bool = False) -> str:
        """``negated`` says *kein* for an indefinite phrase."""
        if self.noun is None:
            if self.pronoun == "self":
                assert subject is not None
                return german.reflexive(subject.person)
            return german.pronoun(self.form, case)
        determiner = "kein" if negated else DETERMINERS[self.determiner]
        words = [german.article(determiner, self.form, case) if determiner else "", german_number(self.number)]
        ending = german.adjective_ending(determiner, self.form, case)
        words += [a.stem + ending for a in self.adjectives] + [german.noun(self.noun, self.plural, case)]
        text = " ".join(word for word in words if word)
        if self.owner:
            text += " " + self.owner.german("gen")
        if self.relative:
            pronoun = german.relative(self.form, self.relative.case)
            text += f" , {self.relative.clause.german_relative(self, pronoun)} ,"
        return f"{text} und {self.partner.german(case)}" if self.partner else text


def english_form(phrase: Phrase | None) -> str:
    """Which row of the English pronouns stands for the phrase; animals and things are *it*."""
    if phrase is None or phrase.form in ("1s", "1p", "pl"):
        return "pl" if phrase is None else phrase.form
    if phrase.partner:
        return "pl"
    if phrase.thing or (phrase.noun and phrase.noun.kind != "person"):
        return "n"
    return phrase.form


def english_number(number: int) -> str:
    if number <= len(ONES):
        return ONES[number - 1] if number else ""
    tens, ones = number // 10 * 10, number % 10
    return f"{TENS[tens][0]} {ONES[ones - 1]}" if ones else TENS[tens][0]


def german_number(number: int) -> str:
    """Ones before tens, as in German, but in three words so that the numbers share a small vocabulary."""
    if number <= len(EINS):
        return EINS[number - 1] if number else ""
    tens, ones = number // 10 * 10, number % 10
    return f"{EINS[ones - 1]} und {TENS[tens][1]}" if ones else TENS[tens][1]
