"""Random choices in integers: the same on every machine, without bias, each countable.

A dart is 20 random bits: a token (4 bits) and a height (16 bits). The first dart that lands below
its token's weight is the draw. So token j is drawn with chance w_j / (sum of w), whatever the sum
is: no division, and all 2**20 darts can be counted. (Rejection sampling, von Neumann 1951.)

All bits come from SHA-256 of (seed, position, purpose, number): nothing else moves them, neither
the draft nor how a run was cut into blocks.
"""

import hashlib
from itertools import count

from capra_graph import is_integer
from tiny_lm import V

HEIGHTS = 1 << 16                               # a weight of 65536 catches every dart at its token
DART_BITS = 20


def numbers(seed, position, purpose):
    """Random integers of 256 bits, without end."""
    for number in count():
        text = f"{seed} {position} {purpose} {number}"
        yield int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def darts(seed, position):
    """(token, height) of each dart thrown at a position, without end."""
    for number in numbers(seed, position, "dart"):
        yield divmod(number % (1 << DART_BITS), HEIGHTS)


def draw(weights, darts):
    """The token of the first dart below its token's weight; weights: V integers, 0 .. 65536.

    Raises ValueError where no dart can land.
    """
    check_weights(weights)
    for token, height in darts:
        if height < weights[token]:
            return token
    raise ValueError("the darts ended before one landed; draw wants them without end")


def check_weights(weights):
    """Raise ValueError unless `weights` are V integers from 0 to 65536, one of them above 0."""
    if len(weights) != V or not all(is_integer(w) and 0 <= w <= HEIGHTS for w in weights):
        raise ValueError(f"weights {weights} must be {V} integers from 0 to {HEIGHTS}")
    if not any(weights):
        raise ValueError(f"weights {weights} are all 0: there is no token to draw")


def uniform(limit, numbers):
    """An integer from 0 to limit - 1, each as likely: the first number, cut to bits, below it."""
    bits = (limit - 1).bit_length()
    for number in numbers:
        value = number % (1 << bits)
        if value < limit:
            return value
    raise ValueError("the numbers ended before one was below the limit")


def pick(weights, number):
    """The token that `number`, 0 .. (sum of weights) - 1, falls on when weights lie end to end."""
    for token, weight in enumerate(weights):
        if number < weight:
            return token
        number -= weight
    raise ValueError("the number is not below the sum of the weights")


class Seeded:
    """The choices of one seed. Sampling asks for these three and for nothing else.

    `purpose` keeps choices at one position apart: each has random bits of its own.
    """

    def __init__(self, seed):
        if not is_integer(seed):
            raise ValueError(f"seed {seed!r} must be an integer")
        self.seed = seed

    def draw(self, position, weights):
        """A token by the darts of that position: the same darts for whoever asks."""
        return draw(weights, darts(self.seed, position))

    def pick(self, position, purpose, weights):
        """A token with chance weight / sum, from random bits of its own."""
        return pick(weights, uniform(sum(weights), numbers(self.seed, position, purpose)))

    def below(self, position, purpose, share, whole):
        """True with chance share / whole; always where share is not smaller."""
        return uniform(whole, numbers(self.seed, position, purpose)) < share
