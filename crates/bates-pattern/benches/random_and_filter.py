"""The usual way to make OpenG2P identifiers, as a peer for the benchmark: draw random digits, add the check digit,
and discard those that the rules reject. Prints accepted identifiers per second of one core."""

import re
import secrets
import sys
import time

LENGTH, SECONDS = int(sys.argv[1]), float(sys.argv[2])
ASCENDING, DESCENDING = "0123456789", "9876543210"
REPEATING_DIGIT = re.compile(r"(\d)\1")
REPEATING_BLOCK = re.compile(r"(\d{2,}).*?\1")
EVEN_RUN = re.compile(r"[02468]{3}")
STEP = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]


def product(a, b):
    turn = (a + b) % 5 if a < 5 else (a - b) % 5
    return turn + 5 if (a < 5) != (b < 5) else turn


PRODUCT = [[product(a, b) for b in range(10)] for a in range(10)]
PLACE = [list(range(10))]
for _ in range(7):
    PLACE.append([PLACE[-1][STEP[digit]] for digit in range(10)])
INVERSE = [0, 4, 3, 2, 1, 5, 6, 7, 8, 9]


def check_digit(digits):
    state = 0
    for place, digit in enumerate(reversed(digits), 1):
        state = PRODUCT[state][PLACE[place % 8][int(digit)]]
    return str(INVERSE[state])


def accepted(text):
    runs = (text[at : at + 3] for at in range(len(text) - 2))
    return not (
        text[0] in "01"
        or any(run in ASCENDING or run in DESCENDING for run in runs)
        or REPEATING_DIGIT.search(text)
        or REPEATING_BLOCK.search(text)
        or EVEN_RUN.search(text)
        or (len(text) >= 10 and text[:5] == text[-5:])
        or (len(text) >= 10 and text[:5] == text[-5:][::-1])
        or "142857" in text
    )


accepted_texts, started = set(), time.perf_counter()
while time.perf_counter() - started < SECONDS:
    for _ in range(1000):
        digits = str(secrets.randbelow(10 ** (LENGTH - 1))).zfill(LENGTH - 1)
        text = digits + check_digit(digits)
        if accepted(text):
            accepted_texts.add(text)
print(len(accepted_texts) / (time.perf_counter() - started))
