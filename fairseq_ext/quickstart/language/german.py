"""German inflection: articles, adjective endings, nouns, pronouns and finite verbs.

Cases are ``nom, acc, dat, gen``; a noun's form is ``m``, ``f``, ``n`` or ``pl``; persons are ``1s, 1p, 3s, 3p``.
"""

from __future__ import annotations

from fairseq_ext.quickstart.language.lexicon import Noun
from fairseq_ext.quickstart.language.verbs import Verb

CASES = ("nom", "acc", "dat", "gen")
_DEFINITE = {"m": "der den dem des", "f": "die die der der", "n": "das das dem des", "pl": "die die den der"}
_STRONG = {"m": "er en em es", "f": "e e er er", "n": "es es em es", "pl": "e e en er"}
_MIXED = {"m": "- en em es", "f": "e e er er", "n": "- - em es", "pl": "e e en er"}
_RELATIVE = {"m": "der den dem", "f": "die die der", "n": "das das dem", "pl": "die die denen"}
_PRONOUNS = {
    "1s": "ich mich mir", "1p": "wir uns uns",
    "m": "er ihn ihm", "f": "sie sie ihr", "n": "es es ihm", "pl": "sie sie ihnen",
}  # fmt: skip
_CONTRACTED = {
    "in dem": "im", "in das": "ins", "an dem": "am", "an das": "ans", "von dem": "vom",
}  # fmt: skip
_HELPERS = {  # 1s, 3s, 1p = 3p, for the present and the past
    "haben": ("habe hat haben", "hatte hatte hatten"),
    "sein": ("bin ist sind", "war war waren"),
    "werden": ("werde wird werden", "wurde wurde wurden"),
    "können": ("kann kann können", "konnte konnte konnten"),
    "müssen": ("muss muss müssen", "musste musste mussten"),
    "wollen": ("will will wollen", "wollte wollte wollten"),
    "dürfen": ("darf darf dürfen", "durfte durfte durften"),
}


def _pick(table: dict[str, str], form: str, case: str) -> str:
    return table[form].split()[CASES.index(case)].replace("-", "")


def article(determiner: str, form: str, case: str) -> str:
    """``der`` is the article itself; of other determiners the stem is given (``dies``, ``jed``, ``ein``, ``mein``)."""
    if determiner == "der":
        return _pick(_DEFINITE, form, case)
    if determiner in ("dies", "jed", "welch", "viel"):
        return determiner + _pick(_STRONG, form, case)
    return determiner + _pick(_MIXED, form, case)


def adjective_ending(determiner: str, form: str, case: str) -> str:
    """Weak after *der, dieser, jeder*, strong after nothing, a number or *viele*, and mixed after *ein, kein, mein*."""
    if determiner in ("", "viel"):
        return "en" if case == "gen" and form in "mn" else _pick(_STRONG, form, case)
    weak = "e" if form != "pl" and (case == "nom" or (case == "acc" and form != "m")) else "en"
    if determiner in ("der", "dies", "jed", "welch"):
        return weak
    return {"m": "er", "n": "es"}.get(form, weak) if weak == "e" else weak


def noun(word: Noun, plural: bool, case: str) -> str:
    if plural:
        return word.de_plural + ("n" if case == "dat" and word.de_plural[-1] not in "ns" else "")
    if word.ending.startswith("+"):
        return word.de + (word.ending[1:] if case != "nom" else "")
    return word.de + (word.ending if case == "gen" else "")


def relative(form: str, case: str) -> str:
    return _pick(_RELATIVE, form, case)


def pronoun(form: str, case: str) -> str:
    """``form`` is a gender, ``pl``, or a first person."""
    return _PRONOUNS[form].split()[CASES.index(case)]


def reflexive(person: str) -> str:
    return {"1s": "mich", "1p": "uns"}.get(person, "sich")


def contracted(preposition: str, rest: str) -> str:
    """Preposition and article in one word: ``in dem Garten`` is ``im Garten``."""
    first, _, tail = rest.partition(" ")
    joined = _CONTRACTED.get(f"{preposition} {first}")
    return f"{joined} {tail}" if joined else f"{preposition} {rest}".strip()


def helper(name: str, person: str, past: bool = False) -> str:
    """A form of *haben, sein, werden* or a modal verb."""
    return _HELPERS[name][past].split()[("1s", "3s").index(person) if person in ("1s", "3s") else 2]


def finite(verb: Verb, person: str, past: bool) -> str:
    """The conjugated form, without its separable prefix."""
    infinitive, third, preterite, _ = verb.german
    if past:
        return preterite if person in ("1s", "3s") else preterite + ("n" if preterite.endswith("e") else "en")
    if person == "3s":
        return third
    if person == "1s":
        if infinitive == "wissen":
            return third
        return infinitive[:-1] if infinitive.endswith("en") else infinitive[:-1] + "e"
    return infinitive


def participle(verb: Verb) -> str:
    return verb.prefix + verb.german[3]


def infinitive(verb: Verb, zu: bool = False) -> str:
    """``aufmachen``; with ``zu``: ``aufzumachen``."""
    if not zu:
        return verb.prefix + verb.german[0]
    return f"{verb.prefix}zu{verb.german[0]}" if verb.prefix else f"zu {verb.german[0]}"
