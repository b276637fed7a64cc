"""Given names and their familiar forms, and words that differ by one letter."""

from __future__ import annotations

from functools import cache

from .words import stemmer

_FORMS = """
    robert bob bobby rob robbie; william bill billy will willie liam; james jim jimmy jamie; john johnny jack jon;
    richard rick ricky dick rich; michael mike mick mikey; thomas tom tommy; charles charlie chuck charley;
    joseph joe joey; edward ed eddie ted teddy ned; daniel dan danny; david dave davey; matthew matt; anthony tony;
    christopher chris topher; nicholas nick nicky; samuel sam sammy; benjamin ben benny; alexander alex alec sandy;
    andrew andy drew; stephen steven steve; gregory greg; kenneth ken kenny; lawrence larry laurence; leonard leo lenny;
    peter pete; philip phil phillip; raymond ray; ronald ron ronnie; timothy tim; walter walt; frederick fred freddy;
    francis frank frankie; gerald gerry jerry; harold harry hal; henry hank; jacob jake; jeffrey jeff geoffrey geoff;
    jonathan jon jonny; joshua josh; patrick pat paddy; theodore ted theo; vincent vince vinny; zachary zach zack;
    elizabeth liz beth betty lizzie eliza; katherine kate katie kathy catherine cathy kathryn kat;
    margaret maggie meg peggy;
    jennifer jen jenny; jessica jess jessie; patricia pat patty trish; rebecca becky becca; susan sue susie suzanne;
    deborah debbie deb debra; barbara barb; christina chris tina christine; dorothy dot dottie; eleanor ellie nora;
    victoria vicky tori; samantha sam; amanda mandy; melanie mel; caroline carrie carol; pamela pam; sandra sandy;
    stephanie steph; theresa terry tess teresa; virginia ginny; abigail abby; alexandra alex sasha; gabriel gabe;
    nathaniel nate nathan; maximilian max; dominic dom; albert al bert; alfred alf fred; arthur art; eugene gene;
    donald don donny; douglas doug
"""


@cache
def _table() -> dict[str, tuple[str, ...]]:
    """The other forms of each name, all as stems."""
    made: dict[str, set[str]] = {}
    for group in _FORMS.split(";"):
        names = stemmer()(group.split())
        for name in names:
            made.setdefault(name, set()).update(other for other in names if other != name)
    return {name: tuple(sorted(others)) for name, others in made.items()}


def same_given_name(word: str) -> tuple[str, ...]:
    """Other forms of a given name, name and forms as stems: Bob is Robert."""
    return _table().get(word, ())


def one_edit(one: str, other: str) -> bool:
    """Whether two words differ by one letter put in, left out or exchanged, after a first one that is the same."""
    longest, shortest = max(len(one), len(other)), min(len(one), len(other))
    if longest - shortest > 1 or one[0] != other[0]:
        return False
    before = 0
    while before < shortest and one[before] == other[before]:
        before += 1
    after = 0
    while after < shortest - before and one[-1 - after] == other[-1 - after]:
        after += 1
    return before + after >= longest - 1
