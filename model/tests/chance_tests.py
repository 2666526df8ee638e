"""Tests of the random choices: every dart, number and seed counted.

check_all() -> a list of problems: check_darts counts all 2**20 darts, check_choices every number.
"""

import hashlib
import unittest
from collections import Counter
from fractions import Fraction
from itertools import islice
from unittest import mock

import paths
import chance
import tiny_lm
from softmax_gold import ONE, softmax

EDGES = {                                       # weights at the ends of what there can be
    "one weight 65536": [ONE] + [0] * 15,
    "the last token only": [0] * 15 + [1],
    "zeros between": [0, 3, 0, 65533] + [0] * 12,
    "equal": softmax([0] * 16),
    "all of them 65536": [ONE] * 16,
    "a real softmax": softmax([5, -80, 40, 41, 0, 12, -7, 3, 3, 3, 90, 88, -127, 127, 60, 1]),
}
ALL_DARTS = [divmod(dart, chance.HEIGHTS) for dart in range(1 << chance.DART_BITS)]


def check_all():
    """The problems of both parts, one by one."""
    yield from check_darts()
    yield from check_choices()


def check_darts(some=tuple(EDGES.values())):
    """Of all darts there are, w_j draw token j: counted for each of the weights."""
    for weights in some:
        caught = Counter()
        throws = iter(ALL_DARTS)                # each draw takes the darts up to its own
        try:
            while True:
                caught[chance.draw(weights, throws)] += 1
        except ValueError:                      # no dart is left
            pass
        if [caught[token] for token in range(tiny_lm.V)] != list(weights):
            yield f"the darts of {weights} draw {dict(caught)}: total variation " \
                  f"{float(distance(caught, weights)):.6f}"


def distance(caught, weights):
    """The total variation between what was caught and the weights' distribution."""
    landed, total = sum(caught.values()), sum(weights)
    return sum(abs(Fraction(caught[token], landed) - Fraction(weight, total))
               for token, weight in enumerate(weights)) / 2


def check_choices():
    """`uniform` gives every number below a limit once; `below` and `pick` count as they should."""
    for limit in (1, 2, 3, 7, 8, 9, 100):
        bits = (limit - 1).bit_length()
        got = [first(limit, number) for number in range(1 << bits)]
        if sorted(value for value in got if value is not None) != list(range(limit)):
            yield f"uniform({limit}) of all {1 << bits} numbers is {got}"
        for share in range(limit + 2):
            said = sum(below(share, limit, number) for number in range(limit))
            if said != min(share, limit):
                yield f"below({share}, {limit}) is true {said} times in {limit}: total variation " \
                      f"{abs(said - min(share, limit)) / limit:.6f}"
    for weights in ([0, 2, 0, 1], [3], [1, 1, 0]):
        got = Counter(chance.pick(weights, number) for number in range(sum(weights)))
        if [got[token] for token in range(len(weights))] != weights:
            yield f"pick of {weights} picks {dict(got)}"


def first(limit, number):
    """What `uniform` makes of one number; None where it wants another."""
    try:
        return chance.uniform(limit, [number])
    except ValueError:
        return None


def below(share, whole, number):
    """Seeded.below where the random number is `number`."""
    with mock.patch.object(chance, "numbers", lambda *key: iter([number])):
        return chance.Seeded(0).below(1, "accept", share, whole)


class Chance(unittest.TestCase):
    def test_all_darts_and_all_numbers_count_as_they_should(self):
        self.assertEqual(list(check_all()), [])

    def test_darts_are_those_of_their_seed_and_position(self):
        def some(seed, position):
            return list(islice(chance.darts(seed, position), 50))

        self.assertEqual(some(7, 3), some(7, 3))
        self.assertEqual(len({tuple(some(seed, position))
                              for seed in (-1, 0, 1, 12) for position in (0, 1, 2, 12)}), 16)
        for token, height in some(5, 5):
            self.assertTrue(0 <= token < 16 and 0 <= height < 65536)

    def test_darts_are_the_low_bits_of_sha_256(self):
        digest = hashlib.sha256(b"5 9 dart 0").hexdigest()
        self.assertEqual(next(chance.darts(5, 9)), (int(digest[-5], 16), int(digest[-4:], 16)))

    def test_choices_at_one_position_do_not_share_their_bits(self):
        seeded = chance.Seeded(3)
        half = [[seeded.below(position, purpose, 1, 2) for position in range(64)]
                for purpose in ("accept", "recover")]
        self.assertNotEqual(*half)

    def test_bad_weights_and_seeds_are_refused(self):
        for weights, words in (([0] * 16, "are all 0: there is no token to draw"),
                               ([1] * 15, "must be 16 integers from 0 to 65536"),
                               ([-1] + [1] * 15, "must be 16 integers from 0 to 65536"),
                               ([65537] + [1] * 15, "must be 16 integers from 0 to 65536"),
                               ([0.5] * 16, "must be 16 integers from 0 to 65536")):
            with self.assertRaises(ValueError) as caught:
                chance.draw(weights, chance.darts(1, 1))
            self.assertEqual(str(caught.exception), f"weights {weights} {words}")
        for seed in (1.0, "1", None, True):
            with self.assertRaises(ValueError) as caught:
                chance.Seeded(seed)
            self.assertEqual(str(caught.exception), f"seed {seed!r} must be an integer")


if __name__ == "__main__":
    unittest.main()
