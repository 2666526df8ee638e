"""Tests of the int8 arithmetic against exact fractions."""

import random
import unittest
from fractions import Fraction

import paths
import quant

HALF = Fraction(1, 2)
FULL_WORDS = (-(1 << 31), 1 - (1 << 31), -129, -128, -127, -1, 0, 1, 127, 128, (1 << 31) - 1)


def nearest(value):
    """The integer nearest to the Fraction `value`, by distances; a tie goes away from zero."""
    below = value.numerator // value.denominator
    to_below = value - below
    to_above = below + 1 - value
    if to_below == to_above:
        return below + 1 if value > 0 else below
    return below if to_below < to_above else below + 1


def saturated(value, low=-127):
    """`value` limited to low..127, written as the cases of the definition."""
    if value < low:
        return low
    if value > 127:
        return 127
    return value


class Rounding(unittest.TestCase):
    def test_ties_go_away_from_zero_on_both_sides(self):
        for value, expected in ((0.5, 1), (-0.5, -1), (1.5, 2), (-1.5, -2), (2.5, 3), (-2.5, -3),
                                (126.5, 127), (-126.5, -127)):
            with self.subTest(value=value):
                self.assertEqual(quant.round_away(value), expected)

    def test_neighbours_of_a_tie_go_to_the_nearer_integer(self):
        just_below_half = 0.49999999999999994
        self.assertEqual(quant.round_away(just_below_half), 0)
        self.assertEqual(quant.round_away(-just_below_half), 0)
        self.assertEqual(quant.round_away(2.4999999999999996), 2)
        self.assertEqual(quant.round_away(2.5000000000000004), 3)

    def test_large_floats_are_integers_already(self):
        for value in (2.0 ** 52 + 1, 2.0 ** 53 - 1, -(2.0 ** 53) + 1, 2.0 ** 60):
            with self.subTest(value=value):
                self.assertEqual(quant.round_away(value), int(value))

    def test_random_floats_agree_with_exact_fractions(self):
        rng = random.Random(1)
        for _ in range(5000):
            value = rng.uniform(-300, 300) * rng.choice((1, 1e-3, 1e9))
            quarters = rng.randrange(-1000, 1000) / 4
            for real in (value, quarters):
                self.assertEqual(quant.round_away(real), nearest(Fraction(real)), real)


class Clamp(unittest.TestCase):
    def test_every_value_near_the_limits(self):
        for value in range(-300, 301):
            self.assertEqual(quant.clamp8(value), saturated(value))
            self.assertEqual(quant.clamp8(value, 0), saturated(value, 0))


class Quantize(unittest.TestCase):
    def test_exact_ratios_agree_with_fractions(self):
        rng = random.Random(2)
        for _ in range(5000):
            x = rng.randrange(-4096, 4097) / 64
            scale = 2.0 ** rng.randrange(-6, 3)
            expected = saturated(nearest(Fraction(x) / Fraction(scale)))
            self.assertEqual(quant.quantize(x, scale), expected, (x, scale))

    def test_minus_128_is_never_produced(self):
        for x in (-127.4, -127.5, -128.0, -1000.0):
            self.assertEqual(quant.quantize(x, 1.0), -127)

    def test_saturates_where_the_ratio_overflows_a_float(self):
        self.assertEqual(quant.quantize(1e300, 1e-300), 127)
        self.assertEqual(quant.quantize(-1e300, 1e-300), -127)

    def test_refuses_a_value_that_is_not_finite(self):
        for x in (float("nan"), float("inf"), float("-inf")):
            with self.subTest(x=x), self.assertRaises(ValueError) as caught:
                quant.quantize(x, 1.0)
            self.assertEqual(str(caught.exception),
                             f"quantize: {x} is not a finite number; int8 has no value for it")

    def test_refuses_a_scale_that_is_not_positive_and_finite(self):
        for scale in (0.0, -1.0, float("nan"), float("inf")):
            with self.subTest(scale=scale), self.assertRaises(ValueError) as caught:
                quant.quantize(1.0, scale)
            self.assertEqual(str(caught.exception),
                             f"quantize: scale {scale} must be a positive finite number")


class Multiplier(unittest.TestCase):
    def test_known_values(self):
        cases = ((1.0, (1 << 23, 23)), (0.5, (1 << 23, 24)), (3.0, (3 << 22, 22)),
                 (1 / 3, (11184811, 25)), (8388608.0, (1 << 23, 0)), (16777215.0, (16777215, 0)),
                 (2.0 ** -40, (1 << 23, 63)))
        for real, expected in cases:
            with self.subTest(real=real):
                self.assertEqual(quant.multiplier(real), expected)

    def test_a_mantissa_rounded_up_to_2_to_24_is_halved_and_the_shift_lowered(self):
        self.assertEqual(quant.multiplier(1.0 - 2.0 ** -26), (1 << 23, 23))
        self.assertEqual(quant.multiplier(2.0 ** -40 * (1 - 2.0 ** -30)), (1 << 23, 63))

    def test_random_multipliers_are_the_nearest_with_24_bits(self):
        rng = random.Random(3)
        for _ in range(5000):
            real = rng.uniform(1, 2) * 2.0 ** rng.randrange(-40, 23)
            mantissa, shift = quant.multiplier(real)
            self.assertTrue(1 << 23 <= mantissa < 1 << 24, real)
            self.assertTrue(0 <= shift <= 63, real)
            error = abs(Fraction(mantissa, 1 << shift) - Fraction(real))
            self.assertTrue(error <= HALF / (1 << shift), real)

    def test_refuses_what_is_not_a_positive_finite_number(self):
        for real in (0.0, -1.0, float("nan"), float("inf")):
            with self.subTest(real=real), self.assertRaises(ValueError) as caught:
                quant.multiplier(real)
            self.assertEqual(str(caught.exception),
                             f"multiplier: {real} must be a positive finite number")

    def test_refuses_a_shift_that_does_not_fit_the_field(self):
        for real, shift in ((2.0 ** -41, 64), (16777216.0, -1), (16777215.75, -1), (5e-324, 1097)):
            with self.subTest(real=real), self.assertRaises(ValueError) as caught:
                quant.multiplier(real)
            self.assertEqual(str(caught.exception),
                             f"multiplier: {real} needs a shift of {shift}, outside 0..63")


class Requant(unittest.TestCase):
    def expect(self, acc, mantissa, shift):
        rounded = nearest(Fraction(acc * mantissa, 1 << shift))
        case = (acc, mantissa, shift)
        self.assertEqual(quant.requant(acc, mantissa, shift), saturated(rounded), case)
        self.assertEqual(quant.requant(acc, mantissa, shift, relu=True), saturated(rounded, 0),
                         case)

    def test_ties_on_both_sides_go_away_from_zero(self):
        for acc in range(-260, 261):
            self.expect(acc, 1, 1)
            self.expect(acc, 3, 2)
            self.expect(acc, 1 << 23, 24)

    def test_corners_of_every_field(self):
        for acc in FULL_WORDS:
            for mantissa in (0, 1, 3, 1 << 23, (1 << 24) - 1):
                for shift in range(64):
                    self.expect(acc, mantissa, shift)

    def test_the_largest_product_a_shift_can_halve_is_a_tie(self):
        self.assertEqual(quant.requant(-(1 << 31), 1 << 23, 55), -1)
        self.assertEqual(quant.requant((1 << 31) - 1, 1 << 23, 55), 0)

    def test_random_cases_agree_with_exact_fractions(self):
        rng = random.Random(4)
        for _ in range(20000):
            acc = rng.randrange(-(1 << 31), 1 << 31) >> rng.randrange(32)
            mantissa = rng.randrange(1 << 24)
            self.expect(acc, mantissa, rng.randrange(64))


if __name__ == "__main__":
    unittest.main()
