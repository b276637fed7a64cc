"""English number words and Roman numerals, with what they are worth."""

from __future__ import annotations

_UP_TO_20 = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = """
    first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth
    sixteenth seventeenth eighteenth nineteenth twentieth twenty-first
"""
_ROMAN = "II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX"

ONES = {name: at for at, name in enumerate(_UP_TO_20.split())}
TENS = {name: 10 * at for at, name in enumerate(_TENS.split(), 2)}
BIG = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}
ORDINALS = {name: at for at, name in enumerate(_ORDINALS.split(), 1)}
ROMAN = {name: str(at) for at, name in enumerate(_ROMAN.split(), 2) if len(name) > 1}
"""Of two letters or more: a single one is an initial."""
