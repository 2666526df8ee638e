"""Tests of drafts on the host: the table's probabilities, its learning, and the chip around it."""

import unittest
from collections import Counter

import paths
import capra
from host_lm import TableChip, count_runs, fit_runs, table
from tiny_lm import float_generate, make_model


class Table(unittest.TestCase):
    def test_a_bigram_worked_out_by_hand(self):
        counts = {(3,): {5: 2, 8: 1}, (5,): {3: 1}}
        guesses, later = table(counts, 1)([3], 2)
        self.assertEqual([token for token, _ in guesses], [5, 3])
        self.assertAlmostEqual(guesses[0][1], (2 + 0.1) / (3 + 1.6))
        self.assertAlmostEqual(guesses[1][1], (1 + 0.1) / (1 + 1.6))
        self.assertEqual(later, 0.9)

    def test_a_pair_goes_before_the_bigram_which_counts_as_one_observation(self):
        counts = {(3,): {5: 2, 8: 1}, (7, 3): {8: 2}}
        five, eight = (2 + 0.1) / 4.6, (1 + 0.1) / 4.6
        (guess,), _ = table(counts, 2)([7, 3], 1)
        self.assertEqual(guess[0], 8)
        self.assertAlmostEqual(guess[1], (2 + eight) / 3)
        (guess,), _ = table(counts, 2)([6, 7, 3][:1] + [3], 1)          # the pair 6 3 is unknown
        self.assertEqual(guess[0], 5)
        self.assertAlmostEqual(guess[1], five)

    def test_what_the_target_says_counts_three_times_in_this_run_alone(self):
        counts = {(3,): {5: 2}}
        ahead = table(counts, 1)
        self.assertEqual(ahead([3], 1)[0][0][0], 5)
        (guess,), _ = ahead([3, 8, 3], 1)
        self.assertEqual(guess[0], 8)
        self.assertAlmostEqual(guess[1], (3 + 0.1) / (5 + 1.6))
        self.assertEqual(ahead([3, 8, 3], 1)[0], [guess])               # not counted again
        self.assertEqual(counts, {(3,): {5: 2}})
        self.assertEqual(table(counts, 1)([3], 1)[0][0][0], 5)

    def test_the_counts_are_those_of_the_float_runs_named(self):
        mdl = make_model("random", 2)
        pairs, triples = Counter(), Counter()
        for start in (0, 2, 9):
            run = float_generate(mdl, start, 24)
            pairs.update(zip(run, run[1:]))
            triples.update(zip(run, run[1:], run[2:]))
        runs = fit_runs(mdl, (0, 2, 9))
        counts = count_runs(runs, 2)
        self.assertEqual({(*last, token): number for last, row in counts.items()
                          for token, number in row.items()}, {**pairs, **triples})
        self.assertEqual(set(map(len, count_runs(runs, 1))), {1})


class Chip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mdl = make_model("random", 2)
        cls.chip = TableChip(cls.mdl, 64, 15)

    def test_tokens_are_the_plain_ones_and_no_program_is_the_drafts(self):
        for start, n in ((0, 40), (5, 17), (3, 1), (3, 0)):
            tokens, stats, log = self.chip.generate(start, n)
            self.assertEqual(tokens, self.chip.plain(start, n)[0])
            self.assertEqual({entry["kind"] for entry in log}, {"verify"} if n else set())
            self.assertEqual(stats["emitted"], n)

    def test_k_is_the_most_it_may_choose(self):
        chip = TableChip(self.mdl, 20, 2, share=self.chip)
        rows = [entry["m"] for entry in chip.generate(0, 20)[2]]
        self.assertEqual(max(rows), 3)

    def test_a_block_the_scratchpad_has_no_room_for_is_made_shorter(self):
        policy = self.chip.policy(64)
        sure = [1.0] * 15
        k = policy(16, sure, 1.0)
        self.assertGreater(k, 7)
        self.chip._vprog(48, k + 1)
        with self.assertRaises(capra.CompileError):
            self.chip._vprog(48, 16)

    def test_fitted_to_nothing_it_starts_blank_and_learns(self):
        chip = TableChip(self.mdl, 40, 15, share=self.chip, fit=())
        tokens, stats, _ = chip.generate(0, 40)
        self.assertEqual(tokens, chip.plain(0, 40)[0])
        self.assertLess(stats["blocks"], 36)

    def test_errors(self):
        for arguments, message in (
                ({"order": 3}, "order = 3: a table looks at 1 or 2 tokens"),
                ({"order": 0}, "order = 0: a table looks at 1 or 2 tokens"),
                ({"fit": (16,)}, "start 16 is not a token; tokens are 0 to 15"),
                ({"share": TableChip(make_model(), 2, 1)},
                 "share is a chip of another model; its programs hold other weights")):
            with self.assertRaises(ValueError) as caught:
                TableChip(self.mdl, 4, 1, **arguments)
            self.assertEqual(str(caught.exception), message)
        with self.assertRaises(capra.CompileError) as caught:
            self.chip.generate(0, 65)
        self.assertIn("end the run at 64 tokens", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
