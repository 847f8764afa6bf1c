"""An embedded corpus: sentence pairs of a small English-German grammar, drawn at random.

The German side follows the real rules of gender, number and case, verb position, separable verbs, relative clauses and
negation (numbers are written in three words, *drei und zwanzig*). The same seed gives the same pairs everywhere.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from fairseq_ext.quickstart.language import german
from fairseq_ext.quickstart.language.clauses import WHO, Clause, Part, State
from fairseq_ext.quickstart.language.draw import Draw
from fairseq_ext.quickstart.language.lexicon import LINKS, THINGS
from fairseq_ext.quickstart.language.phrases import Phrase
from fairseq_ext.quickstart.language.verbs import VERBS, rivals

Pair = tuple[str, str]
MAX_WORDS = 36
"""Longer sentences are drawn again, unless told otherwise."""


def statement(draw: Draw) -> Pair:
    clause = draw.clause()
    return fronted(draw, clause)


def fronted(draw: Draw, clause: Clause) -> Pair:
    """A main clause, sometimes with its time or place in front; German then has the subject after the verb."""
    if clause.time and draw.chance(0.5):
        return clause.english(front=clause.time), clause.german_main("time")
    if clause.place and clause.verb.frame not in ("moving", "putting") and draw.chance(0.3):
        english = f"{clause.place.english()} {replace(clause, place=None).english()}"
        return english, clause.german_main("place")
    return clause.english(), clause.german_main()


def passive(draw: Draw) -> Pair:
    clause = draw.passive()
    return clause.english(), clause.german_main()


def state(draw: Draw) -> Pair:
    clause = draw.state()
    return clause.english(), clause.german_main()


def existence(draw: Draw) -> Pair:
    what = draw.phrase(("person", "animal", *THINGS))
    if what.determiner not in ("a", "", "many", "no"):
        what = replace(what, determiner="" if what.plural else "a", owner=None)
    where = draw.place((what.noun,) if what.noun else ())
    be = "are" if what.plural else "is"
    if draw.chance(0.4):
        return f"{where.english()} there {be} {what.english()}", f"{where.german()} gibt es {what.german('acc')}"
    return f"there {be} {what.english()} {where.english()}", f"es gibt {what.german('acc')} {where.german()}"


def reported(draw: Draw) -> Pair:
    """*She says that ..*: the German clause ends with its verb."""
    verb = draw.rng.choice(VERBS["saying"])
    outer = draw.fill(verb, draw.subject(("person",), depth=0), "", 0, 0.0)
    inner = _inner(draw)
    return f"{outer.english()} that {inner.english()}", f"{outer.german_main()} , dass {inner.german_sub()}"


def _inner(draw: Draw) -> Clause | State:
    kind = draw.weighted((("active", 8), ("passive", 1), ("state", 2)))
    return {"active": draw.clause, "passive": draw.passive, "state": draw.state}[kind]()


def linked(draw: Draw) -> Pair:
    """Main and subordinate clause joined by *because, although, if ..* in either order."""
    english, german_word = draw.rng.choice(list(LINKS.items()))
    tense = draw.weighted((("present", 2), ("past", 2), ("perfect", 1)))
    main = draw.clause(tense=tense, depth=0, extras=0.7)
    sub = draw.clause(tense=tense, depth=0, extras=0.5) if draw.chance(0.8) else draw.state(past=tense != "present")
    if draw.chance(0.45):
        return (
            f"{english} {sub.english()} , {main.english()}",
            main.german_main("text", f"{german_word} {sub.german_sub()} ,"),
        )
    return f"{main.english()} {english} {sub.english()}", f"{main.german_main()} , {german_word} {sub.german_sub()}"


def repeated(draw: Draw) -> Pair:
    """Two clauses; the second speaks of the first one's thing as *it*, whose German gender it has to recall."""
    verbs = [v for v in VERBS["transitive"] if "person" in v.subjects and not v.link[0] and v.link[2] == "acc"]
    first = draw.rng.choice([v for v in verbs if set(v.objects) & set(THINGS)])
    clause = draw.fill(first, draw.phrase(("person",), depth=0), draw.rng.choice(["present", "past"]), 0, 0.6)
    thing = draw.phrase(tuple(k for k in first.objects if k in THINGS), rivals(first), depth=0)
    clause = replace(clause, objects=(Part(thing),), negated=False)
    assert thing.noun is not None
    second = draw.rng.choice([v for v in verbs if thing.noun.kind in v.objects and v.english != first.english])
    again = draw.fill(second, Phrase(pronoun=clause.subject.form), clause.tense, 0, 0.4)
    again = replace(again, objects=(Part(Phrase(pronoun=thing.form, thing=not thing.plural)),))
    link, german_link = draw.rng.choice([("and", "und"), ("but", "aber")])
    german_text = f"{clause.german_main()} , {german_link} {again.german_main()}"
    return f"{clause.english()} {link} {again.english()}", german_text


def chained(draw: Draw) -> Pair:
    """*She says that .., because ..*: two subordinate clauses."""
    (english, german_text), (link, german_link) = reported(draw), draw.rng.choice(list(LINKS.items()))
    reason = draw.clause(depth=0, extras=0.5)
    return f"{english} {link} {reason.english()}", f"{german_text} , {german_link} {reason.german_sub()}"


def question(draw: Draw) -> Pair:
    clause = replace(draw.clause(depth=0, extras=0.6), purpose=None)
    kind = draw.rng.choice(["yes", "why", "who", "object"])
    if kind == "why":
        return clause.english("why", question=True), clause.german_main("text", "warum")
    if kind == "who" and clause.verb.subjects[0] == "person":
        someone = replace(clause, subject=Phrase(pronoun="m"))
        return someone.english("who", question=True, subject=False), someone.german_main("text", "wer", skip=WHO)
    gap = clause.objects[-1] if clause.objects else None
    if kind == "object" and gap and gap.phrase.noun and not gap.de and not gap.en:
        person = gap.phrase.noun.kind == "person"
        german_word = german.pronoun("m", gap.case).replace("ih", "we") if person else "was"
        if person or gap.case == "acc":
            asked = replace(clause, to_form=len(clause.objects) > 1)
            english = asked.english("who" if person else "what", question=True, skip=gap)
            return english, clause.german_main("text", german_word, skip=gap)
    return clause.english(question=True), clause.german_main("none")


_KINDS: tuple[tuple[Callable[[Draw], Pair], float], ...] = (
    (statement, 8), (linked, 6), (reported, 4), (question, 3), (repeated, 3), (passive, 1.5), (state, 2),
    (existence, 1), (chained, 3),
)  # fmt: skip


def tidy(text: str, end: str) -> str:
    """One comma where two clauses end at once, and none before the sentence's end."""
    text = re.sub(r"( ,)+(?= ,)", "", f"{text} {end}")
    return re.sub(r" , ([.?])", r" \1", text)


def draw_pair(draw: Draw) -> Pair:
    kind = draw.rng.choices([k for k, _ in _KINDS], [w for _, w in _KINDS])[0]
    end = "?" if kind is question else "."
    english, german_text = kind(draw)
    return tidy(english, end), tidy(german_text, end)


def pairs(seed: int, longest: int = MAX_WORDS) -> Iterator[Pair]:
    """Endlessly many distinct pairs (no English sentence comes twice) of at most ``longest`` words, tokens separated by
    spaces."""
    return distinct(partial(draw_pair, Draw(random.Random(seed))), longest)


def distinct(drawn: Callable[[], Pair], longest: int) -> Iterator[Pair]:
    """The pairs that are drawn, without those of more than ``longest`` words and those whose English came before."""
    seen: set[str] = set()
    while True:
        english, german_text = drawn()
        if max(len(english.split()), len(german_text.split())) <= longest and english not in seen:
            seen.add(english)
            yield english, german_text


def corpus(sizes: dict[str, int], seed: int = 1, longest: int = MAX_WORDS) -> dict[str, list[Pair]]:
    """``{"train": .., "valid": .., "test": ..}`` of the given sizes. All come from one stream of distinct pairs, so no
    source sentence is in two of them; a pair whose German is already in another split is left out as well."""
    stream, owner = pairs(seed, longest), {}
    splits: dict[str, list[Pair]] = {}
    for name in sorted(sizes, key=sizes.__getitem__):  # the small ones first: they keep the sentences that clash
        splits[name] = []
        while len(splits[name]) < sizes[name]:
            english, german_text = next(stream)
            if owner.setdefault(german_text, name) == name:
                splits[name].append((english, german_text))
    return splits
