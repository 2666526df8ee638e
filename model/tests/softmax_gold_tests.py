"""Tests of the fixed-point softmax: high-precision exponentials, bit-by-bit division, exact p_i."""

import decimal
import random
import unittest

import paths
import softmax_gold
from comparing import assert_same

ALL_ONES = (1 << 40) - 1


def restoring(numerator, denominator):
    """Quotient of unsigned 40-bit integers, a quotient bit a step, as the chip's divider does."""
    remainder = 0
    quotient = 0
    for bit in range(39, -1, -1):
        remainder = (remainder << 1) | ((numerator >> bit) & 1)
        quotient <<= 1
        if remainder >= denominator:
            remainder -= denominator
            quotient |= 1
    return quotient


def exact_table():
    """T[d] = round(65535 * exp(-d / 16)) with 60 decimal digits."""
    context = decimal.Context(prec=60, rounding=decimal.ROUND_HALF_UP)
    table = []
    for d in range(256):
        exponent = context.divide(decimal.Decimal(-d), decimal.Decimal(16))
        value = context.multiply(decimal.Decimal(65535), context.exp(exponent))
        table.append(int(value.to_integral_value(rounding=decimal.ROUND_HALF_UP)))
    return table


def by_definition(scores, table):
    """The probabilities, one score at a time, from a table and the restoring division."""
    top = sorted(scores)[-1]
    total = 0
    for score in scores:
        total += table[top - score]
    reciprocal = restoring(2 ** 38, total)
    return [(table[top - score] * reciprocal + 2 ** 21) // 2 ** 22 for score in scores]


class ExpTable(unittest.TestCase):
    def test_every_entry_agrees_with_60_digits(self):
        assert_same(self, list(softmax_gold.EXP_TABLE), exact_table())

    def test_first_and_last_entries(self):
        self.assertEqual(len(softmax_gold.EXP_TABLE), 256)
        self.assertEqual(softmax_gold.EXP_TABLE[0], 65535)
        self.assertEqual(softmax_gold.EXP_TABLE[16], 24109)
        self.assertEqual(softmax_gold.EXP_TABLE[255], 0)


class Divider(unittest.TestCase):
    def test_corners_agree_with_restoring_division(self):
        corners = (0, 1, 2, 3, 7, 65535, 65536, 1 << 20, (1 << 38) - 1, 1 << 38, (1 << 38) + 1,
                   1 << 39, ALL_ONES - 1, ALL_ONES)
        for numerator in corners:
            for denominator in corners:
                with self.subTest(numerator=numerator, denominator=denominator):
                    self.assertEqual(softmax_gold.divu(numerator, denominator),
                                     restoring(numerator, denominator))

    def test_random_divisions_agree_with_restoring_division(self):
        rng = random.Random(1)
        for _ in range(3000):
            numerator = rng.randrange(1 << rng.randrange(1, 41))
            denominator = rng.randrange(1 << rng.randrange(1, 41))
            self.assertEqual(softmax_gold.divu(numerator, denominator),
                             restoring(numerator, denominator), (numerator, denominator))

    def test_division_by_zero_gives_all_ones(self):
        for numerator in (0, 1, 1 << 38, ALL_ONES):
            self.assertEqual(softmax_gold.divu(numerator, 0), ALL_ONES)


class Softmax(unittest.TestCase):
    def test_one_score_has_all_the_probability(self):
        for score in (-128, -127, 0, 127):
            self.assertEqual(softmax_gold.softmax([score]), [65536])

    def test_two_equal_scores_share_it(self):
        self.assertEqual(softmax_gold.softmax([5, 5]), [32768, 32768])

    def test_600_equal_scores_get_one_part_each(self):
        assert_same(self, softmax_gold.softmax([-7] * 600), [109] * 600)   # 65536 / 600 = 109.2

    def test_a_score_127_below_the_largest_is_worth_what_exp_says(self):
        # T[127] = round(65535 * exp(-7.9375)) = 23 of 65535 + 23
        self.assertEqual(softmax_gold.softmax([127, 0]), [65513, 23])

    def test_the_widest_distance_is_255(self):
        self.assertEqual(softmax_gold.softmax([-128, 127]), [0, 65536])

    def test_adding_a_constant_to_every_score_changes_nothing(self):
        scores = [-20, 3, 0, 11, 11, -60]
        moved = [score + 50 for score in scores]
        self.assertEqual(softmax_gold.softmax(moved), softmax_gold.softmax(scores))

    def test_random_scores_agree_with_the_definition(self):
        rng = random.Random(2)
        table = exact_table()
        for _ in range(300):
            spread = rng.choice((1, 8, 40, 128))
            scores = [rng.randrange(-spread, spread) for _ in range(rng.choice((1, 2, 7, 64, 600)))]
            assert_same(self, softmax_gold.softmax(scores), by_definition(scores, table), scores)

    def test_the_longest_row_agrees_with_the_definition(self):
        rng = random.Random(3)
        scores = [rng.randrange(-128, 128) for _ in range(4096)]
        assert_same(self, softmax_gold.softmax(scores), by_definition(scores, exact_table()))


if __name__ == "__main__":
    unittest.main()
