"""Tests of comparing: a failure is told at once, by its first difference."""

import time
import unittest

import paths
from comparing import assert_same


class AssertSame(unittest.TestCase):
    def fails(self, got, expected):
        with self.assertRaises(self.failureException) as caught:
            assert_same(self, got, expected, "words")
        return str(caught.exception)

    def test_equal_sequences_pass(self):
        assert_same(self, [1, [2, 3]], [1, [2, 3]])
        assert_same(self, (), ())

    def test_the_first_difference_is_told(self):
        self.assertEqual(self.fails([5, 6, 7], [5, 8, 9]), "words[1] is 6, expected 8")
        self.assertEqual(self.fails([5], [5, 8]), "words[1] is 'nothing', expected 8")
        self.assertEqual(self.fails([5], (5,)), "words is a list, expected a tuple")

    def test_600_equal_numbers_fail_in_less_than_a_second(self):
        began = time.monotonic()
        self.assertEqual(self.fails([7] * 600, [9] * 600), "words[0] is 7, expected 9")
        self.assertLess(time.monotonic() - began, 1)


if __name__ == "__main__":
    unittest.main()
