"""Clauses: one tree, written out as an English clause and as a German main clause, subordinate clause or question.

The two languages differ in order: a German main clause keeps its finite verb in second place whatever comes first
and closes with participle, infinitive or separable prefix; a subordinate clause ends with the finite verb; time comes
before the objects and pronouns before everything; *not* is *kein* beside an indefinite object and *nicht* elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairseq_ext.quickstart.language import german
from fairseq_ext.quickstart.language.lexicon import MANNERS, OFTEN, TIMES, Adjective
from fairseq_ext.quickstart.language.phrases import Phrase
from fairseq_ext.quickstart.language.verbs import Verb

MODALS = {"can": "können", "must": "müssen", "want": "wollen", "may": "dürfen"}
_ALL_TIMES = {en: de for group in TIMES.values() for en, de in group.items()}


@dataclass(frozen=True)
class Part:
    """An object or a place: a phrase with its case and its prepositions, if it has any."""

    phrase: Phrase
    case: str = "acc"
    en: str = ""
    de: str = ""

    def english(self, subject: Phrase | None = None) -> str:
        return f"{self.en} {self.phrase.english(self.case, subject)}".strip()

    def german(self, subject: Phrase | None = None, negated: bool = False) -> str:
        return german.contracted(self.de, self.phrase.german(self.case, subject, negated))


@dataclass(frozen=True)
class Clause:
    """Who does what, when, where and how; each language writes it out by its own rules."""

    subject: Phrase
    verb: Verb
    tense: str = "present"
    """``present, past, perfect, future`` or one of :data:`MODALS`."""
    objects: tuple[Part, ...] = ()
    """In German order; the English order is the reverse where ``to_form`` is set."""
    negated: bool = False
    passive: bool = False
    to_form: bool = False
    """*gives the book to the woman* instead of *gives the woman the book*."""
    often: str = ""
    time: str = ""
    manner: str = ""
    place: Part | None = None
    purpose: Clause | None = None
    """*(goes there) to buy bread*: a clause of which only objects and verb are said."""
    attempt: Clause | None = None
    """*(tries) to buy bread*, likewise."""

    # -- English -----------------------------------------------------------------------------------------------------

    def _english_verbs(self, question: bool = False) -> tuple[str, str]:
        """Auxiliary (may be empty) and main verb."""
        base, third, past, participle = (form.replace("_", " ") for form in self.verb.english)
        one = self.subject.person == "3s"
        have, do = ("has", "does") if one else ("have", "do")
        be = {"1s": "am", "3s": "is"}.get(self.subject.person, "are")
        was = "was" if self.subject.person in ("1s", "3s") else "were"
        past_tense = self.tense == "past"
        if self.passive:
            return (have, f"been {participle}") if self.tense == "perfect" else (was if past_tense else be, participle)
        if self.tense == "perfect":
            return have, participle
        if self.tense == "want":
            plain = not self.negated and not question
            return ("" if plain else do), f"{'wants' if plain and one else 'want'} to {base}"
        if self.tense in MODALS or self.tense == "future":
            return ("will" if self.tense == "future" else self.tense), base
        if self.negated or question:
            return ("did" if past_tense else do), base
        return "", past if past_tense else third if one else base

    def _english_rest(self, skip: Part | None = None, time: bool = True) -> list[str]:
        parts = list(reversed(self.objects)) if self.to_form else list(self.objects)
        words = []
        for part in parts:
            link = "to " if self.to_form and part.case == "dat" else ""
            words.append(link.strip() or part.en if part is skip else link + part.english(self.subject))
        words += [self.manner, self.place.english() if self.place and self.place is not skip else ""]
        for clause in filter(None, (self.attempt, self.purpose)):
            words += [f"to {clause.verb.english[0].replace('_', ' ')}", *clause._english_rest()]
        return [*words, self.time if time else ""]

    def english(self, front: str = "", question: bool = False, skip: Part | None = None, subject: bool = True) -> str:
        """``front`` opens the clause (a time said there is not repeated); ``skip`` is the part a relative pronoun or a
        question word stands for."""
        aux, main = self._english_verbs(question and subject)
        name = self.subject.english() if subject else ""
        order = [aux, name] if question else [name, aux]
        words = [front, *order, "not" if self.negated else "", self.often, main]
        return " ".join(word for word in [*words, *self._english_rest(skip, front != self.time)] if word)

    # -- German ------------------------------------------------------------------------------------------------------

    def _german_verbs(self) -> tuple[str, list[str]]:
        """Finite verb without prefix, and what closes the clause."""
        person, past = self.subject.person, self.tense == "past"
        if self.passive:
            perfect = self.tense == "perfect"
            words = [german.participle(self.verb), *(["worden"] if perfect else [])]
            return german.helper("sein" if perfect else "werden", person, past), words
        if self.tense == "perfect":
            return german.helper("sein" if self.verb.be else "haben", person), [german.participle(self.verb)]
        if self.tense in MODALS or self.tense == "future":
            forbidden = self.tense == "must" and self.negated
            name = "dürfen" if forbidden else MODALS.get(self.tense, "werden")
            return german.helper(name, person), [german.infinitive(self.verb)]
        return german.finite(self.verb, person, past), [self.verb.prefix] if self.verb.prefix else []

    def _middle(self, skip: Part | None = None, time: bool = True, place: bool = True) -> list[str]:
        parts = [part for part in self.objects if part is not skip]
        pronouns = [part for part in parts if part.phrase.noun is None and not part.de]
        nouns = [part for part in parts if part.phrase.noun is not None and not part.de]
        linked = [part for part in parts if part.de]
        none = next((p for p in nouns if p.case == "acc" and p.phrase.indefinite), None) if self.negated else None
        pieces = [p.german(self.subject) for p in sorted(pronouns, key=lambda p: p.case)]
        pieces += [_ALL_TIMES[self.time] if self.time and time else "", OFTEN[self.often] if self.often else ""]
        pieces += [p.german(self.subject, negated=p is none) for p in nouns]
        pieces += ["nicht" if self.negated and none is None else "", MANNERS[self.manner] if self.manner else ""]
        pieces += [p.german(self.subject) for p in linked]
        pieces += [self.place.german() if self.place and self.place is not skip and place else ""]
        return [piece for piece in pieces if piece]

    def _infinitives(self) -> list[str]:
        words = []
        for comma, clause in ((",", self.attempt), (", um", self.purpose)):
            if clause:
                words += [comma, *clause._middle(), german.infinitive(clause.verb, zu=True), ","]
        return words

    def german_main(self, front: str = "subject", text: str = "", skip: Part | None = None) -> str:
        """``front``: what stands before the verb: ``subject``, ``time``, ``place``, ``text`` (the given one), or
        ``none`` for a yes-no question."""
        verb, closing = self._german_verbs()
        subject = self.subject.german("nom")
        place = self.place.german() if self.place else ""
        first = {"subject": subject, "time": _ALL_TIMES.get(self.time, ""), "place": place, "text": text}.get(front, "")
        after = "" if front == "subject" or skip is WHO else subject
        words = [first, verb, after, *self._middle(skip, time=front != "time", place=front != "place"), *closing]
        return " ".join(word for word in [*words, *self._infinitives()] if word)

    def german_sub(self, skip: Part | None = None, subject: bool = True) -> str:
        verb, closing = self._german_verbs()
        if closing and closing[0] == self.verb.prefix:
            closing, verb = [], self.verb.prefix + verb
        words = [
            self.subject.german("nom") if subject else "",
            *self._middle(skip),
            *closing,
            verb,
            *self._infinitives(),
        ]
        return " ".join(word for word in words if word)

    # -- as a relative clause -----------------------------------------------------------------------------------------

    def _gap(self, head: Phrase) -> Part | None:
        return next((part for part in self.objects if part.phrase.noun is head.noun), None)

    def english_relative(self, head: Phrase) -> str:
        gap = self._gap(head)
        return self.english(skip=gap, subject=gap is not None)

    def german_relative(self, head: Phrase, pronoun: str) -> str:
        gap = self._gap(head)
        opening = f"{gap.de} {pronoun}".strip() if gap else pronoun
        return f"{opening} {self.german_sub(skip=gap, subject=gap is not None)}"


WHO = Part(Phrase(pronoun="m"))
"""The subject of a question for the subject: left out, as the question word stands for it."""


@dataclass(frozen=True)
class State:
    """*The dog is (not) old(er than the cat).*."""

    subject: Phrase
    adjective: Adjective
    than: Phrase | None = None
    past: bool = False
    negated: bool = False

    def english(self) -> str:
        person = self.subject.person
        be = {"1s": "am", "3s": "is"}.get(person, "are")
        if self.past:
            be = "was" if person in ("1s", "3s") else "were"
        what = f"{self.adjective.en_more} than {self.than.english('acc')}" if self.than else self.adjective.en
        return f"{self.subject.english()} {be} {'not ' if self.negated else ''}{what}"

    def _parts(self) -> tuple[str, str, str]:
        what = f"{self.adjective.more} als {self.than.german('nom')}" if self.than else self.adjective.de
        verb = german.helper("sein", self.subject.person, self.past)
        return self.subject.german("nom"), verb, ("nicht " if self.negated else "") + what

    def german_main(self, front: str = "subject", text: str = "") -> str:
        subject, verb, what = self._parts()
        return f"{text} {verb} {subject} {what}" if front == "text" else f"{subject} {verb} {what}"

    def german_sub(self) -> str:
        subject, verb, what = self._parts()
        return f"{subject} {what} {verb}"
