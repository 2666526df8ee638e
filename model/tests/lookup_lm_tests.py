"""Tests of the draft without a model: what it looks up, and the chip around it."""

import random
import unittest

import paths
from lookup_lm import LookupChip, lookup
from tiny_lm import make_model


def by_text(tokens):
    """lookup by Python's own search in a string: ever shorter endings, the last place of each."""
    text = "".join(chr(65 + token) for token in tokens)
    for start in range(1, len(text)):
        ending = text[start:]
        place = text[:-1].rfind(ending)
        if place >= 0:
            return ord(text[place + len(ending)]) - 65
    return None


class Lookup(unittest.TestCase):
    def test_by_hand(self):
        for tokens, answer in (
                ([], None), ([7], None), ([7, 3], None),
                ([7, 7], 7),                            # place and ending overlap
                ([7, 3, 7], 3),
                ([7, 3, 7, 4, 7], 4),                   # the last place of two
                ([2, 7, 3, 9, 7, 4, 2, 7], 3),          # a longer ending first
                ([1, 2, 1, 2, 1], 2)):
            self.assertEqual(lookup(tokens), answer, tokens)

    def test_against_a_search_in_text(self):
        R = random.Random(8)
        for _ in range(2000):
            tokens = [R.randrange(R.choice((2, 3, 16))) for _ in range(R.randrange(1, 24))]
            self.assertEqual(lookup(tokens), by_text(tokens), tokens)


class Chip(unittest.TestCase):
    def test_tokens_are_the_plain_ones_and_guesses_come_for_nothing(self):
        mdl = make_model("random", 2)
        chip = LookupChip(mdl, 40, 15)
        for start in (0, 5):
            tokens, stats, log = chip.generate(start, 40)
            self.assertEqual(tokens, chip.plain(start, 40)[0])
            self.assertEqual({entry["kind"] for entry in log}, {"verify"})
            self.assertEqual(log[0]["m"], 1)            # there is no past to look in yet
            self.assertLess(stats["blocks"], 32)

    def test_a_run_that_repeats_is_guessed_in_whole_blocks(self):
        tokens, stats, log = LookupChip(make_model(), 48, 15).generate(0, 48)
        rows = [entry["m"] for entry in log]
        self.assertEqual(rows[:16], [1] * 16)           # the rule visits all 16 tokens first
        self.assertEqual((sum(rows[16:]), stats["emitted"]), (32, 48))
        self.assertLess(len(rows), 16 + 8)


if __name__ == "__main__":
    unittest.main()
