"""Random phrases and clauses of the embedded grammar."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

from fairseq_ext.quickstart.language.clauses import Clause, Part, State
from fairseq_ext.quickstart.language.lexicon import (
    ADJECTIVES,
    ANYTHING,
    LIVING,
    MANNERS,
    OFTEN,
    TIMES,
    Adjective,
    Noun,
    nouns_of,
)
from fairseq_ext.quickstart.language.phrases import Phrase, Relative
from fairseq_ext.quickstart.language.verbs import VERBS, Verb, rivals

_SINGULAR = (("the", 10), ("a", 7), ("this", 3), ("every", 1), ("my", 2), ("our", 1), ("his", 1), ("her", 1))
_PLURAL = (("the", 8), ("", 4), ("this", 2), ("many", 2), ("my", 1), ("our", 1), ("their", 1), ("number", 4))
_TENSES = (("present", 9), ("past", 7), ("perfect", 5), ("future", 2), ("can", 1), ("must", 1.5), ("want", 1.5))
_FRAMES = (("transitive", 10), ("intransitive", 3), ("giving", 3), ("putting", 2), ("moving", 2.5), ("trying", 1.5))
_PLACES = {  # kind -> (where, de), (where to, de)
    "room": (("in", "in"), ("into", "in")),
    "ground": (("on", "auf"), ("onto", "auf")),
    "shore": (("by", "an"), ("to", "an")),
}
_REFLEXIVE = ("see", "hear", "love", "ask", "draw", "find")
"""Verbs that may have a reflexive object."""


@cache
def _choices(kinds: tuple[str, ...], against: tuple[str, ...]) -> tuple[tuple[Noun, ...], tuple[float, ...]]:
    """Nouns for a slot with their weights: a few common ones, many rare ones."""
    nouns = tuple(nouns_of(kinds, against))
    return nouns, tuple(1 / (3 + index) for index in range(len(nouns)))


class Draw:
    """Draws trees with one random stream; a method's ``depth`` bounds how deeply clauses nest inside noun phrases."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def weighted(self, options: tuple[tuple[str, float], ...]) -> str:
        return self.rng.choices([o for o, _ in options], [w for _, w in options])[0]

    # -- noun phrases ------------------------------------------------------------------------------------------------

    def noun(self, kinds: tuple[str, ...], against: tuple[str, ...] = (), avoid: tuple[Noun, ...] = ()) -> Noun:
        nouns, weights = _choices(kinds, against)
        for _ in range(20):
            noun = self.rng.choices(nouns, weights)[0]
            if noun not in avoid:
                return noun
        return next(noun for noun in nouns if noun not in avoid)

    def phrase(
        self,
        kinds: tuple[str, ...],
        against: tuple[str, ...] = (),
        avoid: tuple[Noun, ...] = (),
        depth: int = 1,
        plural: float = 0.3,
    ) -> Phrase:
        noun = self.noun(kinds, against, avoid)
        many = self.chance(plural)
        determiner = self.weighted(_PLURAL if many else _SINGULAR)
        number = 0
        if determiner == "number":
            number = self.rng.randrange(20, 100) if self.chance(0.5) else self.rng.randrange(2, 13)
            determiner = self.weighted((("", 3), ("the", 1)))
        adjectives: tuple[Adjective, ...] = ()
        if self.chance(0.4):
            adjectives = tuple(self.adjectives(noun, 2 if self.chance(0.2) else 1))
        phrase = Phrase(noun, many, determiner, number, adjectives)
        if depth > 0 and determiner in ("the", "a", "many", ""):
            if self.chance(0.2):
                relative = self.relative(phrase, avoid, depth - 1)
                return replace(phrase, relative=relative) if relative else phrase
            if determiner == "the" and not number and self.chance(0.1):
                owner = replace(self.phrase(("person",), avoid=(*avoid, noun), depth=0), determiner="the", number=0)
                return replace(phrase, owner=owner)
        return phrase

    def pair(self, phrase: Phrase, kinds: tuple[str, ...], against: tuple[str, ...], avoid: tuple[Noun, ...]) -> Phrase:
        """Sometimes two phrases joined by *and*."""
        if phrase.noun is None or phrase.relative or phrase.owner or phrase.number or not self.chance(0.1):
            return phrase
        return replace(phrase, partner=self.phrase(kinds, against, (*avoid, phrase.noun), depth=0))

    def adjectives(self, noun: Noun, count: int) -> list[Adjective]:
        """Distinct adjectives that suit the noun and do not contradict each other."""
        fitting = [a for a in ADJECTIVES if noun.kind in a.kinds]
        chosen: list[Adjective] = []
        while fitting and len(chosen) < count:
            one = self.rng.choice(fitting)
            chosen.append(one)
            fitting = [a for a in fitting if a.scale != one.scale]
        return chosen

    def subject(self, kinds: tuple[str, ...], avoid: tuple[Noun, ...] = (), depth: int = 1) -> Phrase:
        if "person" in kinds and self.chance(0.15):
            return Phrase(pronoun=self.rng.choice(["1s", "1p", "m", "f", "pl"]))
        phrase = self.phrase(kinds, avoid=avoid, depth=depth)
        if phrase.determiner == "a" and self.chance(0.06):
            return replace(phrase, determiner="no")
        return self.pair(phrase, kinds, (), avoid)

    def object(self, verb: Verb, subject: Phrase, avoid: tuple[Noun, ...], depth: int) -> Phrase:
        if verb.objects[0] == "person" or verb.objects == ANYTHING:
            if verb.english[0] in _REFLEXIVE and not verb.link[0] and self.chance(0.05):
                return Phrase(pronoun="self")
            if "person" in verb.objects and self.chance(0.12):
                others = ["m", "f", "pl"] + (["1s"] if subject.pronoun not in ("1s", "1p") else [])
                return Phrase(pronoun=self.rng.choice(others))
        return self.pair(self.phrase(verb.objects, rivals(verb), avoid, depth), verb.objects, rivals(verb), avoid)

    # -- clauses -----------------------------------------------------------------------------------------------------

    def clause(self, subject: Phrase | None = None, tense: str = "", depth: int = 1, extras: float = 1.0) -> Clause:
        """``extras`` scales how many adverbs and places are added."""
        for _ in range(100):
            verb = self.rng.choice(VERBS[self.weighted(_FRAMES)])
            if subject is None or subject.noun is None or subject.noun.kind in verb.subjects:
                if subject is not None and subject.noun is None and "person" not in verb.subjects:
                    continue
                break
        else:
            raise AssertionError(f"no verb for {subject}")
        return self.fill(verb, subject or self.subject(verb.subjects, depth=depth), tense, depth, extras)

    def fill(self, verb: Verb, subject: Phrase, tense: str, depth: int, extras: float) -> Clause:
        """A clause of this verb and subject with objects, place and adverbs drawn."""
        avoid = (subject.noun,) if subject.noun else ()
        objects: tuple[Part, ...] = ()
        place, to_form = None, False
        if verb.frame == "transitive":
            thing = self.object(verb, subject, avoid, depth)
            objects = (Part(thing, verb.link[2], verb.link[0], verb.link[1]),)
        elif verb.frame == "giving":
            thing = self.phrase(verb.objects, rivals(verb), avoid, depth)
            person = self.phrase(("person",), avoid=(*avoid, *(n for n in [thing.noun] if n)), depth=0)
            objects = (Part(person, "dat"), Part(thing))
            to_form = (
                "_" in verb.english[0] or verb.english[0] == "explain" or (thing.relative is None and self.chance(0.4))
            )
        elif verb.frame == "putting":
            objects = (Part(self.phrase(verb.objects, rivals(verb), avoid, 0)),)
            place = self.place(avoid, whither=True)
        elif verb.frame == "moving":
            place = self.place(avoid, whither=True)
        if place is None and self.chance(0.25 * extras):
            place = self.place((*avoid, *(p.phrase.noun for p in objects if p.phrase.noun)))
        tense = tense or self.weighted(_TENSES)
        negated = self.chance(0.12) and subject.determiner != "no"
        time = self.time(tense) if self.chance(0.3 * extras) else ""
        often = self.rng.choice(list(OFTEN)) if not negated and not time and self.chance(0.1 * extras) else ""
        if often == "never" and (subject.determiner == "no" or tense == "must"):
            often = "always"
        manner = ""
        if not negated and self.chance(0.15 * extras):
            manner = self.rng.choice([m for m in MANNERS if m != "together" or subject.person.endswith("p")])
        purpose = None
        human = subject.noun is None or subject.noun.kind == "person"
        if verb.frame == "moving" and human and self.chance(0.3):
            purpose = self._infinitive(subject)
        if verb.frame == "trying":
            attempt = self._infinitive(subject)
            return Clause(subject, verb, tense, (), negated, often=often, attempt=attempt)
        return Clause(subject, verb, tense, objects, negated, False, to_form, often, time, manner, place, purpose)

    def _infinitive(self, subject: Phrase) -> Clause:
        verb = self.rng.choice([v for v in VERBS["transitive"] if "person" in v.subjects])
        clause = self.fill(verb, subject, "present", 0, 0.0)
        return replace(clause, negated=False, subject=replace(subject, relative=None, owner=None))

    def time(self, tense: str) -> str:
        group = tense if tense in ("past", "future", "present") and self.chance(0.6) else "any"
        return self.rng.choice(list(TIMES[group]))

    def place(self, avoid: tuple[Noun, ...] = (), whither: bool = False) -> Part:
        kind = self.weighted((("room", 6), ("ground", 3), ("shore", 1.5)))
        en, de = _PLACES[kind][whither]
        phrase = self.phrase((kind,), avoid=avoid, depth=0, plural=0.1)
        return Part(phrase, "acc" if whither else "dat", en, de)

    def passive(self, tense: str = "") -> Clause:
        verbs = [v for v in VERBS["transitive"] if not v.link[0] and v.link[2] == "acc"]
        verb = self.rng.choice(verbs)
        patient = self.phrase(verb.objects, rivals(verb))
        agent = self.phrase(verb.subjects, avoid=(patient.noun,) if patient.noun else (), depth=0)
        parts = (Part(agent, "dat", "by", "von"),) if self.chance(0.7) else ()
        tense = tense if tense in ("present", "past", "perfect") else self.rng.choice(["present", "past", "perfect"])
        time = self.time(tense) if self.chance(0.3) else ""
        return Clause(patient, verb, tense, parts, self.chance(0.1), True, time=time)

    def relative(self, head: Phrase, avoid: tuple[Noun, ...], depth: int = 0) -> Relative | None:
        """A relative clause whose gap the head fills, as subject or as object; None where no verb fits."""
        assert head.noun is not None
        bare = Phrase(head.noun, head.plural, "the")
        tense = self.weighted((("present", 3), ("past", 3), ("perfect", 2)))
        if head.noun.kind in LIVING and self.chance(0.5):
            clause = self.clause(bare, tense, depth=depth, extras=0.5)
            return Relative(replace(clause, often=""), "nom")
        verbs = [v for v in VERBS["transitive"] if head.noun.kind in v.objects]
        if not verbs:
            return None
        verb = self.rng.choice(verbs)
        subject = self.subject(verb.subjects, (*avoid, head.noun), depth=depth)
        clause = self.fill(verb, subject, tense, 0, 0.5)
        part = Part(bare, verb.link[2], verb.link[0], verb.link[1])
        return Relative(replace(clause, objects=(part,), often=""), verb.link[2])

    def state(self, past: bool | None = None) -> State:
        for _ in range(100):
            subject = self.phrase((*ANYTHING, "room"))
            assert subject.noun is not None
            adjective = self.adjectives(subject.noun, 1)[0]
            if adjective in subject.adjectives:
                continue
            than = None
            if adjective.more and self.chance(0.5):
                than = self.phrase((subject.noun.kind,), avoid=(subject.noun,), depth=0)
            negated = subject.determiner != "no" and self.chance(0.15)
            return State(subject, adjective, than, self.chance(0.4) if past is None else past, negated)
        raise AssertionError("no adjective for any subject")
