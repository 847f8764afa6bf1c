"""The words of the embedded corpus: nouns, verbs, adjectives and adverbs in English and German, as small tables.

Several English words have two translations, chosen by context: *crane* is a bird (Kranich) where something alive is
meant and a machine (Kran) where something is repaired, people *eat* (essen) and animals *eat* (fressen), a bag is
*light* (leicht) in another way than a kitchen (hell).
"""

from __future__ import annotations

from dataclasses import dataclass

_NOUNS = {  # English singular and plural, German singular and plural, gender, genitive or weak ending
    "person": """
        man men Mann Männer m es; woman women Frau Frauen f; child children Kind Kinder n es
        boy boys Junge Jungen m +n; teacher teachers Lehrer Lehrer m s; doctor doctors Arzt Ärzte m es
        nurse nurses Pflegerin Pflegerinnen f; farmer farmers Bauer Bauern m +n; king kings König Könige m s
        queen queens Königin Königinnen f; student students Student Studenten m +en
        neighbour neighbours Nachbar Nachbarn m +n; baker bakers Bäcker Bäcker m s
        sister sisters Schwester Schwestern f; brother brothers Bruder Brüder m s; aunt aunts Tante Tanten f
        mother mothers Mutter Mütter f; father fathers Vater Väter m s; friend friends Freund Freunde m es
        guest guests Gast Gäste m es; singer singers Sängerin Sängerinnen f; judge judges Richterin Richterinnen f
        painter painters Maler Maler m s; cook cooks Koch Köche m es; soldier soldiers Soldat Soldaten m +en
        princess princesses Prinzessin Prinzessinnen f; witch witches Hexe Hexen f; giant giants Riese Riesen m +n
        daughter daughters Tochter Töchter f; son sons Sohn Söhne m es; hunter hunters Jäger Jäger m s
        fisherman fishermen Fischer Fischer m s; dancer dancers Tänzerin Tänzerinnen f
        thief thieves Dieb Diebe m es""",
    "animal": """
        dog dogs Hund Hunde m es; cat cats Katze Katzen f; sheep sheep Schaf Schafe n es
        bird birds Vogel Vögel m s; cow cows Kuh Kühe f; bear bears Bär Bären m +en; lion lions Löwe Löwen m +n
        pig pigs Schwein Schweine n es; mouse mice Maus Mäuse f; rabbit rabbits Hase Hasen m +n
        goat goats Ziege Ziegen f; wolf wolves Wolf Wölfe m es; duck ducks Ente Enten f
        crane cranes Kranich Kraniche m s; bat bats Fledermaus Fledermäuse f; seal seals Robbe Robben f
        fox foxes Fuchs Füchse m es; snake snakes Schlange Schlangen f; frog frogs Frosch Frösche m es
        hen hens Huhn Hühner n s; monkey monkeys Affe Affen m +n; deer deer Reh Rehe n s; goose geese Gans Gänse f
        elephant elephants Elefant Elefanten m +en; bee bees Biene Bienen f""",
    "mount": """
        horse horses Pferd Pferde n es; camel camels Kamel Kamele n s; donkey donkeys Esel Esel m s""",
    "food": """
        apple apples Apfel Äpfel m s; cake cakes Kuchen Kuchen m s; egg eggs Ei Eier n s
        pear pears Birne Birnen f; fish fish Fisch Fische m es; potato potatoes Kartoffel Kartoffeln f
        loaf loaves Brot Brote n es; nut nuts Nuss Nüsse f; date dates Dattel Datteln f
        plum plums Pflaume Pflaumen f; cherry cherries Kirsche Kirschen f; carrot carrots Karotte Karotten f
        cheese cheeses Käse Käse m s; onion onions Zwiebel Zwiebeln f; lemon lemons Zitrone Zitronen f
        sausage sausages Wurst Würste f""",
    "paper": """
        book books Buch Bücher n es; letter letters Brief Briefe m es; newspaper newspapers Zeitung Zeitungen f
        poem poems Gedicht Gedichte n es; map maps Karte Karten f; report reports Bericht Berichte m es
        file files Akte Akten f; story stories Geschichte Geschichten f; card cards Postkarte Postkarten f
        contract contracts Vertrag Verträge m s""",
    "vessel": """
        cup cups Tasse Tassen f; bottle bottles Flasche Flaschen f; glass glasses Glas Gläser n es
        lamp lamps Lampe Lampen f; basket baskets Korb Körbe m es; bucket buckets Eimer Eimer m s
        jug jugs Krug Krüge m es; bowl bowls Schüssel Schüsseln f; pot pots Topf Töpfe m es
        barrel barrels Fass Fässer n es""",
    "tool": """
        hammer hammers Hammer Hämmer m s; key keys Schlüssel Schlüssel m s; knife knives Messer Messer n s
        rope ropes Seil Seile n es; file files Feile Feilen f; bat bats Schläger Schläger m s
        seal seals Stempel Stempel m s; nut nuts Schraube Schrauben f; clock clocks Uhr Uhren f
        axe axes Axt Äxte f; spoon spoons Löffel Löffel m s; needle needles Nadel Nadeln f
        pen pens Stift Stifte m s; umbrella umbrellas Schirm Schirme m s; sword swords Schwert Schwerter n es""",
    "clothes": """
        coat coats Mantel Mäntel m s; hat hats Hut Hüte m es; shirt shirts Hemd Hemden n es
        dress dresses Kleid Kleider n es; shoe shoes Schuh Schuhe m s; scarf scarves Schal Schals m s
        jacket jackets Jacke Jacken f; glove gloves Handschuh Handschuhe m s; skirt skirts Rock Röcke m s
        belt belts Gürtel Gürtel m s; shawl shawls Tuch Tücher n es""",
    "vehicle": """
        car cars Auto Autos n s; bicycle bicycles Fahrrad Fahrräder n es; bus buses Bus Busse m ses
        boat boats Boot Boote n es; wagon wagons Wagen Wagen m s; train trains Zug Züge m es
        ship ships Schiff Schiffe n es; sledge sledges Schlitten Schlitten m s
        carriage carriages Kutsche Kutschen f""",
    "machine": """
        crane cranes Kran Kräne m s; engine engines Motor Motoren m s; pump pumps Pumpe Pumpen f""",
    "opening": """
        door doors Tür Türen f; window windows Fenster Fenster n s; gate gates Tor Tore n es
        box boxes Kiste Kisten f""",
    "room": """
        house houses Haus Häuser n es; garden gardens Garten Gärten m s; school schools Schule Schulen f
        church churches Kirche Kirchen f; forest forests Wald Wälder m es; village villages Dorf Dörfer n es
        city cities Stadt Städte f; kitchen kitchens Küche Küchen f; park parks Park Parks m s
        shop shops Laden Läden m s; bank banks Bank Banken f; hospital hospitals Krankenhaus Krankenhäuser n es
        castle castles Schloss Schlösser n es; cave caves Höhle Höhlen f; tower towers Turm Türme m es
        palace palaces Palast Paläste m es; stable stables Stall Ställe m s; cellar cellars Keller Keller m s
        library libraries Bibliothek Bibliotheken f""",
    "ground": """
        market markets Markt Märkte m es; field fields Feld Felder n es; island islands Insel Inseln f
        bridge bridges Brücke Brücken f; mountain mountains Berg Berge m es; street streets Straße Straßen f
        roof roofs Dach Dächer n es; table tables Tisch Tische m es; chair chairs Stuhl Stühle m es
        bed beds Bett Betten n es; hill hills Hügel Hügel m s; meadow meadows Wiese Wiesen f
        square squares Platz Plätze m es; tree trees Baum Bäume m es""",
    "shore": """
        bank banks Ufer Ufer n s; lake lakes See Seen m s; window windows Fenster Fenster n s
        wall walls Mauer Mauern f; river rivers Fluss Flüsse m es; fence fences Zaun Zäune m s
        fire fires Feuer Feuer n s""",
}
LIVING = ("person", "animal", "mount")
OWNED = ("paper", "vessel", "tool", "clothes")
THINGS = (*OWNED, "food", "vehicle", "opening")
ANYTHING = (*LIVING, *THINGS)


@dataclass(frozen=True)
class Noun:
    """A noun in both languages. ``ending`` is the German genitive's, or ``+n``/``+en`` for nouns that take it in every
    case but the nominative."""

    en: str
    en_plural: str
    de: str
    de_plural: str
    gender: str
    ending: str
    kind: str


def _nouns() -> list[Noun]:
    nouns = []
    for kind, text in _NOUNS.items():
        for line in text.replace(";", "\n").strip().splitlines():
            en, en_plural, de, de_plural, gender, *ending = line.split()
            nouns.append(Noun(en, en_plural, de, de_plural, gender, "".join(ending), kind))
    return nouns


NOUNS = _nouns()


def nouns_of(kinds: tuple[str, ...], rivals: tuple[str, ...] = ()) -> list[Noun]:
    """Nouns of these kinds whose English word means nothing else among ``kinds`` and ``rivals``: the slot a noun stands
    in then tells which translation is meant."""
    scope = {*kinds, *rivals}
    senses: dict[str, int] = {}
    for noun in NOUNS:
        if noun.kind in scope:
            senses[noun.en] = senses.get(noun.en, 0) + 1
    return [noun for noun in NOUNS if noun.kind in kinds and senses[noun.en] == 1]


@dataclass(frozen=True)
class Adjective:
    """``de`` is the form after *to be*, ``stem`` the one that takes endings, ``more`` the comparative (or empty)."""

    en: str
    en_more: str
    de: str
    stem: str
    more: str
    kinds: tuple[str, ...]
    scale: str
    """What it measures; a noun has one adjective of a scale at most (nothing is cheap and expensive)."""


_ADJECTIVES = (
    ((*ANYTHING, "machine", "room"), "size: small smaller klein klein kleiner; big bigger groß groß größer"),
    (
        (*ANYTHING, "machine"),
        """age: old older alt alt älter
        look: strange - seltsam seltsam -; beautiful - schön schön -; ugly - hässlich hässlich -""",
    ),
    (
        ("animal", "mount", *THINGS),
        """colour: black - schwarz schwarz -; white - weiß weiß -; brown - braun braun -; red - rot rot -
        green - grün grün -; grey - grau grau -; yellow - gelb gelb -""",
    ),
    (
        LIVING,
        """age: young younger jung jung jünger
        body: hungry - hungrig hungrig -; tired - müde müd -; sick - krank krank -; strong stronger stark stark stärker
        weak weaker schwach schwach schwächer; blind - blind blind -
        mind: brave - mutig mutig -; clever - klug klug -; angry - wütend wütend -; happy - glücklich glücklich -
        proud - stolz stolz -; sad - traurig traurig -
        will: lazy - faul faul -; calm calmer ruhig ruhig ruhiger""",
    ),
    (
        ("person",),
        """rank: poor - arm arm -; famous - berühmt berühmt -; rich - reich reich -; friendly - freundlich freundlich -
        honest - ehrlich ehrlich -
        size: tall taller groß groß größer""",
    ),
    (
        (*OWNED, "vehicle", "machine"),
        """age: new newer neu neu neuer
        price: cheap - billig billig -; expensive - teuer teur -
        weight: heavy heavier schwer schwer schwerer; light lighter leicht leicht leichter
        state: broken - kaputt kaputt -; clean - sauber sauber -; dirty - schmutzig schmutzig -; wet - nass nass -""",
    ),
    (
        ("food",),
        """taste: sweet sweeter süß süß süßer; sour - sauer saur -
        state: fresh - frisch frisch -; warm - warm warm -; cold - kalt kalt -""",
    ),
    (
        ("room",),
        """light: dark - dunkel dunkl -; empty - leer leer -; light lighter hell hell heller
        age: old older alt alt älter; new newer neu neu neuer""",
    ),
    (
        ("ground", "shore"),
        """height: tall taller hoch hoh höher
        age: old older alt alt älter
        shape: long - lang lang -; steep - steil steil -""",
    ),
)


def _adjectives() -> list[Adjective]:
    rows = []
    for kinds, text in _ADJECTIVES:
        scale = ""
        for line in text.replace(";", "\n").strip().splitlines():
            before, _, after = line.rpartition(":")
            scale = before.strip() or scale
            en, en_more, de, stem, more = after.split()
            rows.append(Adjective(en, en_more.strip("-"), de, stem, more.strip("-"), kinds, scale))
    return rows


ADJECTIVES = _adjectives()

TIMES = {  # English -> German, by the tense the adverb asks for
    "any": {
        "today": "heute", "at noon": "am Mittag", "at night": "in der Nacht", "in the evening": "am Abend",
        "in summer": "im Sommer", "in winter": "im Winter",
    },
    "past": {
        "yesterday": "gestern", "last week": "letzte Woche", "years ago": "vor Jahren", "this morning": "heute Morgen",
    },
    "present": {"now": "jetzt", "every day": "jeden Tag", "on sundays": "sonntags"},
    "future": {"tomorrow": "morgen", "soon": "bald", "next year": "nächstes Jahr"},
}  # fmt: skip
OFTEN = {"often": "oft", "always": "immer", "sometimes": "manchmal", "never": "nie", "still": "noch"}
MANNERS = {
    "quickly": "schnell", "slowly": "langsam", "carefully": "vorsichtig", "loudly": "laut", "patiently": "geduldig",
    "quietly": "leise", "alone": "allein", "together": "zusammen", "gladly": "gern",
}  # fmt: skip
LINKS = {
    "because": "weil", "although": "obwohl", "if": "wenn", "while": "während", "before": "bevor", "after": "nachdem",
}  # fmt: skip
ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
EINS = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf")
TENS = {
    20: ("twenty", "zwanzig"), 30: ("thirty", "dreißig"), 40: ("forty", "vierzig"), 50: ("fifty", "fünfzig"),
    60: ("sixty", "sechzig"), 70: ("seventy", "siebzig"), 80: ("eighty", "achtzig"), 90: ("ninety", "neunzig"),
}  # fmt: skip
