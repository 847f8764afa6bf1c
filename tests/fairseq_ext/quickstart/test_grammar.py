"""The built-in corpus: German as it has to be, checked against rules and sentences written down here by hand."""

import hashlib
import random
import re
import subprocess
from collections import Counter

import pytest

from fairseq_ext.quickstart.language import german, grammar
from fairseq_ext.quickstart.language.clauses import Clause, Part, State
from fairseq_ext.quickstart.language.draw import Draw
from fairseq_ext.quickstart.language.lexicon import ADJECTIVES, NOUNS, Noun, nouns_of
from fairseq_ext.quickstart.language.phrases import Phrase, Relative, english_number, german_number
from fairseq_ext.quickstart.language.verbs import VERBS, Verb
from tests.warm import python

GENDER = {
    "Mann": "m", "Bauer": "m", "Hund": "m", "Löwe": "m", "Apfel": "m", "Brief": "m", "Hut": "m", "Zug": "m",
    "Frau": "f", "Tante": "f", "Katze": "f", "Birne": "f", "Zeitung": "f", "Jacke": "f", "Tür": "f", "Kirche": "f",
    "Kind": "n", "Pferd": "n", "Ei": "n", "Buch": "n", "Glas": "n", "Hemd": "n", "Auto": "n", "Schloss": "n",
}  # fmt: skip
PERSONS = ("1s", "3s", "1p", "3p")
HELPERS = ("haben", "sein", "werden", "können", "müssen", "wollen", "dürfen")
PLURALS = {"Männer", "Frauen", "Kinder", "Katzen", "Äpfel", "Birnen", "Bücher", "Hunde", "Briefe", "Autos", "Eier"}
ADJECTIVE = "|".join(f"{a.stem}e[nrs]?" for a in ADJECTIVES)
STEMS = {a.stem for a in ADJECTIVES}


@pytest.fixture(scope="module")
def corpus() -> dict[str, list[grammar.Pair]]:
    return grammar.corpus({"train": 12_000, "valid": 300, "test": 300})


def noun(english: str, german_word: str = "") -> Noun:
    return next(n for n in NOUNS if n.en == english and german_word in ("", n.de))


def verb(english: str, german_word: str = "") -> Verb:
    return next(
        v for verbs in VERBS.values() for v in verbs if v.english[0] == english and german_word in ("", v.german[0])
    )


def adjective(english: str, kind: str) -> object:
    return next(a for a in ADJECTIVES if a.en == english and kind in a.kinds)


def the(english: str, plural: bool = False, **more: object) -> Phrase:
    return Phrase(noun(english), plural, "the", **more)  # type: ignore[arg-type]


# -- the corpus as a whole ---------------------------------------------------------------------------------------------


def test_sizes_vocabulary_and_lengths(corpus):
    assert {name: len(pairs) for name, pairs in corpus.items()} == {"train": 12_000, "valid": 300, "test": 300}
    sources = [source for pairs in corpus.values() for source, _ in pairs]
    assert len(set(sources)) == len(sources)
    for side, (low, high) in enumerate([(700, 900), (1200, 1700)]):
        words = Counter(word for pairs in corpus.values() for pair in pairs for word in pair[side].split())
        assert low < len(words) < high
    lengths = [len(target.split()) for _, target in corpus["train"]]
    assert 10 < sum(lengths) / len(lengths) < 15
    assert max(lengths) <= grammar.MAX_WORDS


def test_splits_are_disjoint_in_both_languages(corpus):
    for side in (0, 1):
        sets = [{pair[side] for pair in pairs} for pairs in corpus.values()]
        assert not (sets[0] & sets[1] | sets[0] & sets[2] | sets[1] & sets[2])


def test_same_seed_same_corpus_in_another_process():
    code = (
        "import hashlib; from fairseq_ext.quickstart.language import grammar;"
        "print(hashlib.sha256(repr(grammar.corpus({'train': 200, 'test': 20}, 7)).encode()).hexdigest())"
    )
    program, environment = python()
    environment.pop("PYTHONHASHSEED", None)  # the seed is of the server, at random
    done = subprocess.run([program, "-c", code], env=environment, capture_output=True, text=True, check=True)
    here = grammar.corpus({"train": 200, "test": 20}, 7)
    assert done.stdout.strip() == hashlib.sha256(repr(here).encode()).hexdigest()
    assert here != grammar.corpus({"train": 200, "test": 20}, 8)


def test_tens_of_thousands_of_distinct_pairs():
    stream = grammar.pairs(3)
    assert len({next(stream) for _ in range(25_000)}) == 25_000


# -- rules, read off the sentences -------------------------------------------------------------------------------------


def test_articles_agree_with_gender_and_number(corpus):
    allowed = {
        "das": {"n"}, "dem": {"m", "n"}, "im": {"m", "n"}, "am": {"m", "n"}, "des": {"m", "n"}, "dieses": {"n", "m"},
        "ein": {"m", "n"}, "eine": {"f"}, "einen": {"m"}, "einem": {"m", "n"}, "einer": {"f"},
        "jede": {"f"}, "jedes": {"n"}, "diesen": {"m", "pl"}, "den": {"m", "pl"}, "die": {"f", "pl"},
    }  # fmt: skip
    checked: Counter[str] = Counter()
    for _, text in corpus["train"]:
        for article, between, word in re.findall(r"(?<!, )\b(\w+) (?:(\w+) )?(?=(\w+))", text):
            if article not in allowed or (between and not re.fullmatch(ADJECTIVE, between)):
                continue
            if word in GENDER:
                assert GENDER[word] in allowed[article], text
                checked[article] += 1
            elif word in PLURALS:
                assert "pl" in allowed[article], text
    assert len(checked) >= 10
    assert sum(checked.values()) > 1000


def test_adjective_endings(corpus):
    rules = [  # article, gender, ending of the adjective between them
        ("ein", "m", "er"), ("ein", "n", "es"), ("eine", "f", "e"), ("einen", "m", "en"), ("einem", "m", "en"),
        ("das", "n", "e"), ("dem", "n", "en"), ("den", "m", "en"), ("mein", "n", "es"), ("kein", "m", "er"),
        ("dieses", "n", "e"), ("dieser", "m", "e"), ("jede", "f", "e"), ("im", "n", "en"),
    ]  # fmt: skip
    text = "\n".join(target for _, target in corpus["train"])
    for article, gender, ending in rules:
        found = 0
        for inflected, word in re.findall(rf"\b{article} (\w+) ([A-ZÄÖÜ]\w+)", text):
            if GENDER.get(word) == gender and re.fullmatch(ADJECTIVE, inflected):
                assert inflected.removesuffix(ending) in STEMS, (article, inflected, word)
                found += 1
        assert found > 3, (article, gender)


def test_verb_second_and_verb_final(corpus):
    inverted = [t for _, t in corpus["train"] if re.match(r"(gestern|jetzt|morgen|sonntags|bald) ", t)]
    assert len(inverted) > 60
    forms = {german.finite(v, p, past) for vs in VERBS.values() for v in vs for p in PERSONS for past in (True, False)}
    finite = forms | {german.helper(name, p, past) for name in HELPERS for p in PERSONS for past in (True, False)}
    for text in inverted:
        assert text.split()[1] in finite, text
    reported = [t for _, t in corpus["train"] if ", dass" in t and t.count(",") == 1]
    auxiliaries = {
        "hat",
        "haben",
        "ist",
        "sind",
        "wird",
        "werden",
        "kann",
        "können",
        "muss",
        "müssen",
        "will",
        "wollen",
    }
    perfect = [t for t in reported if re.search(r", dass .*\b(hat|haben)\b", t)]
    assert len(perfect) > 100
    for text in perfect:
        assert text.split()[-2] in auxiliaries, text


def test_separable_verbs_part_and_join(corpus):
    text = [target for _, target in corpus["train"]]
    assert any(re.search(r"\b(macht|machte|machen|machten) .* (auf|zu) [.,?]", t) for t in text)
    assert any(re.search(r", (weil|dass|wenn) .* (auf|zu)mach(t|en|te|ten) ", t) for t in text)
    assert any("gemacht" in t and re.search(r"\b(auf|zu)gemacht\b", t) for t in text)
    assert any(re.search(r"\b(auf|zu)zumachen\b", t) for t in text)
    assert not any(re.search(r"\b(hat|haben) .* (?<!auf)(?<!zu)gemacht\b", t) for t in text)


def test_pronoun_recalls_the_gender_of_its_noun():
    draw = Draw(random.Random(5))
    wanted = {"m": "ihn", "f": "sie", "n": "es"}
    checked = 0
    for _ in range(600):
        english, text = grammar.repeated(draw)
        first, second = re.split(r" , (?:und|aber) ", text)[:2]
        nouns = [w for w in first.split() if w in GENDER]
        if (
            len(nouns) == 2
            and english.split().count("it") == 1
            and english.split().count("them") == 0
            and "," not in first
        ):
            thing = nouns[1]
            if noun_kind(thing) not in ("room", "ground", "person"):
                assert wanted[GENDER[thing]] in second.split(), text
                checked += 1
    assert checked > 20


def noun_kind(word: str) -> str:
    return next(n.kind for n in NOUNS if n.de == word)


def test_context_decides_between_translations(corpus):
    pairs = [pair for split in corpus.values() for pair in split]
    for english, first, second in [
        ("crane", "Kranich", r"Kran\b"),
        ("bank", "Bank", "Ufer"),
        ("nut", "Nuss", "Schraube"),
    ]:
        having = [t for s, t in pairs if re.search(rf"\b{english}s?\b", s)]
        assert any(re.search(rf"\b{first}", t) for t in having)
        assert any(re.search(rf"\b{second}", t) for t in having)
    assert all("Ufer" in t for s, t in pairs if re.search(r"\bby (the|a|this|my) bank\b", s))
    assert all("Bank" in t for s, t in pairs if re.search(r"\bin (the|a|this|my) bank\b", s))
    assert "crane" not in {n.en for n in nouns_of(("animal", "machine"))}


def test_no_stray_commas_or_spaces(corpus):
    for pairs in corpus.values():
        for pair in pairs:
            for text in pair:
                assert "  " not in text
                assert not re.search(r", [,.?]", text), text
                assert re.search(r"[^ ] [.?]$", text), text


# -- sentences with known translations ---------------------------------------------------------------------------------

MAN, WOMAN, CHILD, BOY = the("man"), the("woman"), the("child"), the("boy")
GOLD = [
    (Clause(MAN, verb("see"), objects=(Part(the("dog")),)), "the man sees the dog", "der Mann sieht den Hund",
     "der Mann den Hund sieht"),
    (Clause(BOY, verb("open"), "past", (Part(the("door")),)), "the boy opened the door",
     "der Junge machte die Tür auf", "der Junge die Tür aufmachte"),
    (Clause(WOMAN, verb("open"), "perfect", (Part(the("door")),), time="today"), "the woman has opened the door today",
     "die Frau hat heute die Tür aufgemacht", "die Frau heute die Tür aufgemacht hat"),
    (Clause(CHILD, verb("give"), "future", (Part(BOY, "dat"), Part(the("apple")))),
     "the child will give the boy the apple", "das Kind wird dem Jungen den Apfel geben",
     "das Kind dem Jungen den Apfel geben wird"),
    (Clause(the("farmer", True), verb("help"), "present", (Part(the("queen"), "dat"),), negated=True),
     "the farmers do not help the queen", "die Bauern helfen der Königin nicht", "die Bauern der Königin nicht helfen"),
    (Clause(MAN, verb("read"), "past", (Part(Phrase(noun("book"), determiner="a")),), negated=True),
     "the man did not read a book", "der Mann las kein Buch", "der Mann kein Buch las"),
    (Clause(Phrase(pronoun="1s"), verb("wait"), "must", (Part(the("bus"), "acc", "for", "auf"),), negated=True),
     "I must not wait for the bus", "ich darf nicht auf den Bus warten", "ich nicht auf den Bus warten darf"),
    (Clause(the("car"), verb("repair"), "perfect", (Part(the("guest"), "dat", "by", "von"),), passive=True),
     "the car has been repaired by the guest", "das Auto ist vom Gast repariert worden",
     "das Auto vom Gast repariert worden ist"),
    (Clause(Phrase(pronoun="1p"), verb("go"), "perfect", place=Part(the("forest"), "acc", "into", "in")),
     "we have gone into the forest", "wir sind in den Wald gegangen", "wir in den Wald gegangen sind"),
    (Clause(WOMAN, verb("see"), objects=(Part(Phrase(pronoun="m")),), time="now"), "the woman sees him now",
     "die Frau sieht ihn jetzt", "die Frau ihn jetzt sieht"),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "english", "main", "subordinate"), GOLD, ids=[gold[1] for gold in GOLD])
def test_clauses(clause, english, main, subordinate):
    assert clause.english() == english
    assert clause.german_main() == main
    assert clause.german_sub() == subordinate


def test_fronting_questions_and_purpose():
    clause = Clause(MAN, verb("buy"), "past", (Part(the("egg", True)),), time="yesterday")
    assert clause.english(front="yesterday") == "yesterday the man bought the eggs"
    assert clause.german_main("time") == "gestern kaufte der Mann die Eier"
    assert clause.english(question=True) == "did the man buy the eggs yesterday"
    assert clause.german_main("none") == "kaufte der Mann gestern die Eier"
    assert clause.german_main("text", "weil es regnet ,") == "weil es regnet , kaufte der Mann gestern die Eier"
    close = Clause(MAN, verb("close"), objects=(Part(the("window")),))
    walk = Clause(MAN, verb("go"), place=Part(the("kitchen"), "acc", "into", "in"), purpose=close)
    assert walk.english() == "the man goes into the kitchen to close the window"
    assert grammar.tidy(walk.german_main(), ".") == "der Mann geht in die Küche , um das Fenster zuzumachen ."


def test_relative_clauses():
    bare = the("child")
    helped = Clause(WOMAN, verb("help"), "past", (Part(bare, "dat"),))
    phrase = the("child", relative=Relative(helped, "dat"))
    assert phrase.english() == "the child who the woman helped"
    assert phrase.german("acc") == "das Kind , dem die Frau half ,"
    awaited = Clause(BOY, verb("wait", "warten"), objects=(Part(the("train"), "acc", "for", "auf"),))
    assert the("train", relative=Relative(awaited, "acc")).german("nom") == "der Zug , auf den der Junge wartet ,"
    singing = Clause(the("man", True), verb("sing"), time="at night")
    men = the("man", True, relative=Relative(singing, "nom"))
    assert men.german("dat") == "den Männern , die in der Nacht singen ,"
    assert men.english() == "the men who sing at night"


def test_noun_phrases():
    small, old = adjective("small", "person"), adjective("old", "person")
    assert Phrase(noun("student"), False, "a", 0, (small,)).german("dat") == "einem kleinen Studenten"
    assert Phrase(noun("child"), True, "", 23, (small, old)).german("dat") == "drei und zwanzig kleinen alten Kindern"
    assert Phrase(noun("child"), True, "many", 0, (old,)).german("nom") == "viele alte Kinder"
    assert the("dog", owner=the("neighbour")).german("acc") == "den Hund des Nachbarn"
    assert Phrase(noun("apple"), False, "a", 0, (old,)).english() == "an old apple"
    assert Phrase(noun("egg"), False, "a").german("acc", negated=True) == "kein Ei"
    older = State(the("dog"), adjective("old", "animal"), the("cat"))
    assert (older.english(), older.german_main()) == (
        "the dog is older than the cat",
        "der Hund ist älter als die Katze",
    )
    assert older.german_sub() == "der Hund älter als die Katze ist"
    assert (english_number(21), german_number(21)) == ("twenty one", "ein und zwanzig")
    assert german.contracted("in", "dem Garten") == "im Garten"
