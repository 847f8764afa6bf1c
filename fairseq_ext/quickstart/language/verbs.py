"""The verbs of the embedded corpus, by the frame they stand in.

A row is ``English base, third person, past, participle | German infinitive, third person, past, participle | subjects |
objects``. A German infinitive ``auf:machen`` is separable, a participle with ``+`` forms its perfect with *sein*.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairseq_ext.quickstart.language.lexicon import ANYTHING, LIVING, OWNED, THINGS

_GROUPS = {"any": ANYTHING, "living": LIVING, "owned": OWNED, "things": THINGS, "places": ("room", "ground")}


@dataclass(frozen=True)
class Verb:
    """One sense of a verb. ``english`` and ``german`` hold (base, third person, past, participle)."""

    english: tuple[str, str, str, str]
    german: tuple[str, str, str, str]
    prefix: str
    be: bool
    """The German perfect takes *sein*."""
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    frame: str
    link: tuple[str, str, str] = ("", "", "acc")
    """English and German preposition of the object, and its case."""


_INTRANSITIVE = """
sleep sleeps slept slept | schlafen schläft schlief geschlafen | living
laugh laughs laughed laughed | lachen lacht lachte gelacht | person
work works worked worked | arbeiten arbeitet arbeitete gearbeitet | person
sing sings sang sung | singen singt sang gesungen | person
dance dances danced danced | tanzen tanzt tanzte getanzt | person
swim swims swam swum | schwimmen schwimmt schwamm geschwommen+ | living
wait waits waited waited | warten wartet wartete gewartet | living
run runs ran run | rennen rennt rannte gerannt+ | living
run runs ran run | laufen läuft lief gelaufen+ | machine
stop stops stopped stopped | an:halten hält hielt gehalten | vehicle machine
smile smiles smiled smiled | lächeln lächelt lächelte gelächelt | person
die dies died died | sterben stirbt starb gestorben+ | living
fall falls fell fallen | fallen fällt fiel gefallen+ | living
sit sits sat sat | sitzen sitzt saß gesessen | living
get_up gets_up got_up got_up | auf:stehen steht stand gestanden+ | person
fall_asleep falls_asleep fell_asleep fallen_asleep | ein:schlafen schläft schlief geschlafen+ | living
leave leaves left left | ab:fahren fährt fuhr gefahren+ | vehicle
cry cries cried cried | weinen weint weinte geweint | person
return returns returned returned | zurück:kehren kehrt kehrte gekehrt+ | living
"""

_TRANSITIVE = """
see sees saw seen | sehen sieht sah gesehen | living | any
hear hears heard heard | hören hört hörte gehört | living | living machine
find finds found found | finden findet fand gefunden | living | any
look_for looks_for looked_for looked_for | suchen sucht suchte gesucht | living | any
love loves loved loved | lieben liebt liebte geliebt | person | person
hate hates hated hated | hassen hasst hasste gehasst | person | living
recognise recognises recognised recognised | wieder:erkennen erkennt erkannte erkannt | person | person animal
know knows knew known | kennen kennt kannte gekannt | person | person places
visit visits visited visited | besuchen besucht besuchte besucht | person | person room
ask asks asked asked | fragen fragt fragte gefragt | person | person
invite invites invited invited | ein:laden lädt lud geladen | person | person
call calls called called | an:rufen ruft rief gerufen | person | person
pick_up picks_up picked_up picked_up | ab:holen holt holte geholt | person | person owned
bring_along brings_along brought_along brought_along | mit:bringen bringt brachte gebracht | person | person owned food
paint paints painted painted | malen malt malte gemalt | person | living room
hide hides hid hidden | verstecken versteckt versteckte versteckt | person | owned food
steal steals stole stolen | stehlen stiehlt stahl gestohlen | person | owned food
break breaks broke broken | zerbrechen zerbricht zerbrach zerbrochen | person | vessel tool
throw_away throws_away threw_away thrown_away | weg:werfen wirft warf geworfen | person | paper clothes food
clean cleans cleaned cleaned | putzen putzt putzte geputzt | person | opening vessel
raise raises raised raised | züchten züchtet züchtete gezüchtet | person | animal
raise raises raised raised | auf:heben hebt hob gehoben | person | tool vessel
bite bites bit bitten | beißen beißt biss gebissen | animal | living
chase chases chased chased | jagen jagt jagte gejagt | living | living
open opens opened opened | auf:machen macht machte gemacht | person | opening
close closes closed closed | zu:machen macht machte gemacht | person | opening
switch_on switches_on switched_on switched_on | ein:schalten schaltet schaltete geschaltet | person | machine
repair repairs repaired repaired | reparieren repariert reparierte repariert | person | machine vehicle
buy buys bought bought | kaufen kauft kaufte gekauft | person | things
sell sells sold sold | verkaufen verkauft verkaufte verkauft | person | things
need needs needed needed | brauchen braucht brauchte gebraucht | person | things
forget forgets forgot forgotten | vergessen vergisst vergaß vergessen | person | owned
carry carries carried carried | tragen trägt trug getragen | person | vessel tool
wear wears wore worn | tragen trägt trug getragen | person | clothes
put_on puts_on put_on put_on | an:ziehen zieht zog gezogen | person | clothes
read reads read read | lesen liest las gelesen | person | paper
write writes wrote written | schreiben schreibt schrieb geschrieben | person | paper
eat eats ate eaten | essen isst aß gegessen | person | food
eat eats ate eaten | fressen frisst fraß gefressen | animal mount | food
ride rides rode ridden | reiten reitet ritt geritten | person | mount
ride rides rode ridden | fahren fährt fuhr gefahren | person | vehicle
drive drives drove driven | treiben treibt trieb getrieben | person | animal
drive drives drove driven | lenken lenkt lenkte gelenkt | person | vehicle
draw draws drew drawn | zeichnen zeichnet zeichnete gezeichnet | person | any
draw draws drew drawn | ziehen zieht zog gezogen | mount | vehicle
catch catches caught caught | fangen fängt fing gefangen | person | animal
catch catches caught caught | erreichen erreicht erreichte erreicht | person | vehicle
miss misses missed missed | vermissen vermisst vermisste vermisst | person | living
miss misses missed missed | verpassen verpasst verpasste verpasst | person | vehicle
leave leaves left left | verlassen verlässt verließ verlassen | living | places
leave leaves left left | zurück:lassen lässt ließ gelassen | person | owned
wash washes washed washed | waschen wäscht wusch gewaschen | person | clothes vehicle
feed feeds fed fed | füttern füttert fütterte gefüttert | person | animal mount
"""

_PREPOSITIONAL = """
help helps helped helped | helfen hilft half geholfen | person | person | - - dat
thank thanks thanked thanked | danken dankt dankte gedankt | person | person | - - dat
follow follows followed followed | folgen folgt folgte gefolgt+ | living | living vehicle | - - dat
listen listens listened listened | zu:hören hört hörte gehört | person | person | to - dat
wait waits waited waited | warten wartet wartete gewartet | living | person vehicle | for auf acc
think thinks thought thought | denken denkt dachte gedacht | person | living | of an acc
dream dreams dreamt dreamt | träumen träumt träumte geträumt | person | living places | of von dat
belong belongs belonged belonged | gehören gehört gehörte gehört | owned vehicle | person | to - dat
speak speaks spoke spoken | sprechen spricht sprach gesprochen | person | person | with mit dat
laugh laughs laughed laughed | lachen lacht lachte gelacht | person | living | about über acc
look looks looked looked | auf:passen passt passte gepasst | person | living | after auf acc
"""

_GIVING = """
give gives gave given | geben gibt gab gegeben | person | owned food
show shows showed shown | zeigen zeigt zeigte gezeigt | person | owned living
send sends sent sent | schicken schickt schickte geschickt | person | owned
sell sells sold sold | verkaufen verkauft verkaufte verkauft | person | owned vehicle
explain explains explained explained | erklären erklärt erklärte erklärt | person | paper
lend lends lent lent | leihen leiht lieh geliehen | person | owned vehicle
bring brings brought brought | bringen bringt brachte gebracht | person | owned food
give_back gives_back gave_back given_back | zurück:geben gibt gab gegeben | person | owned
"""

_PUTTING = """
put puts put put | legen legt legte gelegt | person | paper clothes
put puts put put | stellen stellt stellte gestellt | person | vessel
hang hangs hung hung | hängen hängt hängte gehängt | person | clothes
throw throws threw thrown | werfen wirft warf geworfen | person | owned
"""

_MOVING = """
go goes went gone | gehen geht ging gegangen+ | living
run runs ran run | rennen rennt rannte gerannt+ | living
climb climbs climbed climbed | klettern klettert kletterte geklettert+ | living
swim swims swam swum | schwimmen schwimmt schwamm geschwommen+ | living
"""

_TRYING = """
try tries tried tried | versuchen versucht versuchte versucht | person
promise promises promised promised | versprechen verspricht versprach versprochen | person
forget forgets forgot forgotten | vergessen vergisst vergaß vergessen | person
begin begins began begun | an:fangen fängt fing gefangen | person
refuse refuses refused refused | ab:lehnen lehnt lehnte gelehnt | person
"""

_SAYING = """
say says said said | sagen sagt sagte gesagt | person
know knows knew known | wissen weiß wusste gewusst | person
believe believes believed believed | glauben glaubt glaubte geglaubt | person
dream dreams dreamt dreamt | träumen träumt träumte geträumt | person
see sees saw seen | sehen sieht sah gesehen | person
hope hopes hoped hoped | hoffen hofft hoffte gehofft | person
forget forgets forgot forgotten | vergessen vergisst vergaß vergessen | person
"""


def _kinds(text: str) -> tuple[str, ...]:
    return tuple(kind for name in text.split() for kind in _GROUPS.get(name, (name,)))


def _table(frame: str, text: str) -> list[Verb]:
    verbs = []
    for line in text.strip().splitlines():
        english, german, *rest = line.split("|")
        infinitive, *forms = german.split()
        prefix, _, stem = infinitive.rpartition(":")
        link = tuple(word.strip("-") for word in rest[2].split()) if len(rest) > 2 else ("", "", "acc")
        verbs.append(
            Verb(
                english=tuple(english.split()),  # type: ignore[arg-type]
                german=(stem, forms[0], forms[1], forms[2].rstrip("+")),
                prefix=prefix,
                be=forms[2].endswith("+"),
                subjects=_kinds(rest[0]),
                objects=_kinds(rest[1]) if len(rest) > 1 else (),
                frame=frame,
                link=link,  # type: ignore[arg-type]
            )
        )
    return verbs


VERBS = {
    frame: _table(frame, text)
    for frame, text in {
        "intransitive": _INTRANSITIVE,
        "transitive": _TRANSITIVE + _PREPOSITIONAL.lstrip(),
        "giving": _GIVING,
        "putting": _PUTTING,
        "moving": _MOVING,
        "saying": _SAYING,
        "trying": _TRYING,
    }.items()
}


def rivals(verb: Verb) -> tuple[str, ...]:
    """Object kinds of every verb with the same English word in the same frame."""
    same = [other for other in VERBS[verb.frame] if other.english == verb.english and other.link[0] == verb.link[0]]
    return tuple(kind for other in same for kind in other.objects)
