"""Synthetic English-German sentence pairs, for the quickstart and the demo."""
# German verbs move to the end of clauses, and articles, adjectives and pronouns agree with distant nouns. A larger
# network therefore translates better than a small one.

from __future__ import annotations

import random
from typing import NamedTuple

# English singular and plural, German singular and plural, gender.
_PEOPLE = """man men Mann Männer m; woman women Frau Frauen f; child children Kind Kinder n
king kings König Könige m; queen queens Königin Königinnen f; girl girls Mädchen Mädchen n
teacher teachers Lehrer Lehrer m; aunt aunts Tante Tanten f; baker bakers Bäcker Bäcker m
sister sisters Schwester Schwestern f; guest guests Gast Gäste m; witch witches Hexe Hexen f
singer singers Sänger Sänger m; nurse nurses Pflegerin Pflegerinnen f; baby babies Baby Babys n
cook cooks Koch Köche m"""
_THINGS = """dog dogs Hund Hunde m; cat cats Katze Katzen f; horse horses Pferd Pferde n; hat hats Hut Hüte m
lamp lamps Lampe Lampen f; book books Buch Bücher n; table tables Tisch Tische m; door doors Tür Türen f
car cars Auto Autos n; ball balls Ball Bälle m; cup cups Tasse Tassen f; shirt shirts Hemd Hemden n
coat coats Mantel Mäntel m; clock clocks Uhr Uhren f; boat boats Boot Boote n; key keys Schlüssel Schlüssel m"""
# First parts of compounds; a German compound is one word, with the gender of its last part.
_FIRST = (
    "garden Garten; house Haus; winter Winter; paper Papier; travel Reise; kitchen Küchen; night Nacht; toy Spielzeug"
)
# English base, third person, past; German plural, third person, infinitive, participle; particle; case of the object.
_VERBS = """see sees saw sehen sieht sehen gesehen - acc
sleep sleeps slept schlafen schläft schlafen geschlafen - -
find finds found finden findet finden gefunden - acc; help helps helped helfen hilft helfen geholfen - dat
open opens opened machen macht aufmachen aufgemacht auf acc; hear hears heard hören hört hören gehört - acc
laugh laughs laughed lachen lacht lachen gelacht - -; thank thanks thanked danken dankt danken gedankt - dat
carry carries carried tragen trägt tragen getragen - acc
hold holds held halten hält festhalten festgehalten fest acc
wait waits waited warten wartet warten gewartet - -; wash washes washed waschen wäscht waschen gewaschen - acc
answer answers answered antworten antwortet antworten geantwortet - dat
love loves loved lieben liebt lieben geliebt - acc; draw draws drew zeichnen zeichnet zeichnen gezeichnet - acc
bring brings brought bringen bringt mitbringen mitgebracht mit acc"""
_ADJECTIVES = "old alt; small klein; new neu; young jung; red rot; beautiful schön; quiet still; strong stark"
_TIMES = {"present": "now jetzt; today heute", "past": "yesterday gestern", "future": "tomorrow morgen; soon bald"}
_LINKS = "because weil; although obwohl; while während; if wenn"
# Article and ending of the adjective: masculine, feminine, neuter, plural.
_ARTICLES = {
    ("the", "nom"): "der+e die+e das+e die+en", ("a", "nom"): "ein+er eine+e ein+es +e",
    ("the", "acc"): "den+en die+e das+e die+en", ("a", "acc"): "einen+en eine+e ein+es +e",
    ("the", "dat"): "dem+en der+en dem+en den+en", ("a", "dat"): "einem+en einer+en einem+en +en",
}  # fmt: skip
_PLURAL = 3


class _Phrase(NamedTuple):
    english: str = ""
    german: str = ""
    form: int = 0
    """Index of gender or plural in the tables of German forms."""


class _Clause(NamedTuple):
    english: str
    subject: str
    finite: str
    target: _Phrase
    end: str
    """Particle, participle or infinitive."""

    def main(self, front: str = "") -> str:
        """Return the German main clause; ``front`` is an optional word before the verb."""
        first = (front, self.finite, self.subject) if front else (self.subject, self.finite)
        return _joined(*first, self.target.german, self.end)

    def subordinate(self) -> str:
        verb = self.end + ("" if self.end in ("auf", "fest", "mit") else " ") + self.finite
        return _joined(self.subject, self.target.german, verb.strip())


class _Grammar:
    def __init__(self, seed: int, words: float, clauses: int) -> None:
        self.random, self.clauses = random.Random(seed), clauses
        tables = (_rows(table) for table in (_PEOPLE, _THINGS, _VERBS))
        self.people, self.things, self.verbs = (rows[: round(words * len(rows))] for rows in tables)

    def phrase(self, nouns: list[list[str]], case: str, relative: bool = False) -> _Phrase:
        *singular_and_plural, german_singular, german_plural, gender = self.random.choice(nouns)
        plural = self.random.random() < 0.3
        form = _PLURAL if plural else "mfn".index(gender)
        article = self.random.choices(("the", "a"), (3, 2))[0]
        determiner, ending = _ARTICLES[article, case].split(" ")[form].split("+")
        adjective, german_adjective = self.random.choice(_rows(_ADJECTIVES)) if self.random.random() < 0.5 else ("", "")
        english = _joined(adjective, singular_and_plural[plural])
        if article == "a":
            article = "" if plural else "an" if english[0] in "aeiou" else "a"
        noun = german_plural if plural else german_singular
        if nouns is self.things and self.random.random() < 0.4:
            first, german_first = self.random.choice(_rows(_FIRST))
            english, noun = _joined(adjective, first, singular_and_plural[plural]), german_first + noun.lower()
        german = _joined(determiner, adjective and german_adjective + ending, noun)
        if plural and case == "dat" and german[-1] not in "ns":
            german += "n"
        if relative and self.clauses > 1 and self.random.random() < 0.3:
            pronoun = _ARTICLES["the", "nom"].split(" ")[form].split("+")[0]
            inner = self.clause(_Phrase("that", pronoun, form), "present")
            english, german = f"{english} {inner.english}", f"{german} , {inner.subordinate()} ,"
        return _Phrase(_joined(article, english), german, form)

    def clause(self, subject: _Phrase, tense: str, again: _Phrase | None = None) -> _Clause:
        """Return a random clause; if ``again`` is given, its object is a pronoun for this phrase."""
        verb = self.random.choice([verb for verb in self.verbs if again is None or verb[-1] == "acc"])
        base, third, past, german_base, german_third, infinitive, participle, particle, case = verb
        plural, target = subject.form == _PLURAL, _Phrase()
        if again is not None:
            target = _Phrase("them" if again.form == _PLURAL else "it", ("ihn", "sie", "es", "sie")[again.form])
        elif case != "-":
            target = self.phrase(
                self.people if case == "dat" else self.things, case, relative=subject.english != "that"
            )
        english, finite, end = {
            "present": (base if plural else third, german_base if plural else german_third, particle.strip("-")),
            "past": (past, "haben" if plural else "hat", participle),
            "future": (f"will {base}", "werden" if plural else "wird", infinitive),
        }[tense]
        return _Clause(_joined(subject.english, english, target.english), subject.german, finite, target, end)

    def pair(self) -> tuple[str, str]:
        tense = self.random.choice(list(_TIMES))
        first = self.clause(self.phrase(self.people, "nom", relative=True), tense)
        time, german_time = self.random.choice(_rows(_TIMES[tense])) if self.random.random() < 0.4 else ("", "")
        english, german = _joined(time, first.english), first.main(german_time)
        if self.clauses > 1 and self.random.random() < 0.6:
            link, german_link = self.random.choice(_rows(_LINKS))
            again = first.target if first.target.english and self.random.random() < 0.5 else None
            second = self.clause(self.phrase(self.people, "nom"), tense, again)
            english, german = f"{english} {link} {second.english}", f"{german} , {german_link} {second.subordinate()}"
        return f"{english} .", f"{german} .".replace(", ,", ",").replace(", .", ".")


def _rows(table: str) -> list[list[str]]:
    return [row.split() for row in table.replace("\n", ";").split(";")]


def _joined(*words: str) -> str:
    return " ".join(filter(None, words))


def corpus(
    sizes: dict[str, int], seed: int = 1, words: float = 1.0, clauses: int = 2
) -> dict[str, list[tuple[str, str]]]:
    """Return random sentence pairs with space-separated tokens; no English sentence occurs twice.

    Args:
        sizes: split -> number of pairs.
        words: fraction of the nouns and verbs to use, in (0, 1].
        clauses: largest number of clauses per sentence, 1 or 2.
    """
    grammar, seen = _Grammar(seed, words, clauses), set[str]()
    splits: dict[str, list[tuple[str, str]]] = {name: [] for name in sizes}
    for name, pairs in splits.items():
        while len(pairs) < sizes[name]:
            english, german = grammar.pair()
            if english not in seen:
                seen.add(english)
                pairs.append((english, german))
    return splits
