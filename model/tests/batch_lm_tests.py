"""Tests of the batch: every answer is the same as alone, whatever the company.

Its parts, each of which returns its problems, are a share of what
ch16_batch runs in full:

1. check_proof     on symbols: each row of a pass is its own sequence's plain step
2. check_company   passes that three requests of four tokens can meet, against plain decoding
3. check_loads     random loads: requests of uneven length, k and order, few slots
"""

import random
import unittest

import paths
import batch_proof
import batch_runs
import ga2_progs
import hw
import tiny_lm
from batch_lm import BatchChip
from capra import CompileError
from ga2_isa import cycle_counts

SHARE_SEED = 3


def check_proof(count=40):
    """Mixes of up to three sequences, each with rows and cache of its own."""
    chip = batch_runs.make_chip("random", 1, 16)
    return batch_proof.unproved(chip, random.Random(SHARE_SEED).sample(batch_proof.MIXES, count))


def check_company(count=120):
    """A share of every pass there is."""
    chip = batch_runs.make_chip("random", 1, batch_runs.COMPANY_TOKENS, 2, 3)
    runs = [batch_runs.alone(chip, start, batch_runs.COMPANY_TOKENS)
            for start in batch_runs.COMPANY_STARTS]
    draft_after = chip.drafts()
    passes = random.Random(SHARE_SEED).sample(list(batch_runs.companies()), count)
    for members in passes:
        yield from batch_runs.wrong_pass(chip, runs, draft_after, members)


def check_loads(seeds=range(40)):
    """Random loads on random model 2, whose plain tokens vary."""
    chip = batch_runs.make_mixed("random", 2)
    runs = {start: batch_runs.alone(chip, start, batch_runs.LONGEST) for start in range(tiny_lm.V)}
    for seed in seeds:
        yield from batch_runs.wrong_load(chip, runs, seed)[0]


class Answers(unittest.TestCase):
    def test_each_row_is_proved_to_be_its_plain_step(self):
        self.assertEqual(check_proof(), [])

    def test_every_pass_leaves_what_plain_decoding_leaves(self):
        self.assertEqual(list(check_company()), [])

    def test_random_loads_are_served_as_if_alone(self):
        self.assertEqual(list(check_loads()), [])

    def test_all_passes_of_one_small_company(self):
        """Two requests of two tokens: 2 * 3 blocks alone, 2 orders of 3 * 3 together."""
        members = list(batch_runs.companies(2, (0, 1), 2))
        self.assertEqual(len(members), 2 * 3 + 2 * 3 * 3)
        self.assertEqual(len({tuple(one) for one in members}), len(members))

    def test_histories_are_counted(self):
        """One request of 2 tokens whose guess is right: k = 0 twice, or k = 1 once."""
        right = batch_runs.advances([{"tokens": [3, 5, 7]}], {3: 5, 5: 7}.get, 2, (0, 1))
        self.assertEqual(right, [{(0, 0): 1, (0, 1): 2, (1, 0): 1}])
        self.assertEqual(batch_runs.histories(right, 2, (0, 1)), 2)
        alone = {(0, 0): 1}
        # Two of one token: the first, the second, or both together.
        self.assertEqual(batch_runs.histories([alone, alone], 1, (0,)), 3)

    def test_a_batch_of_one_decodes_as_the_fast_chip(self):
        chip = batch_runs.make_chip("random", 1, 12, 3, 1)
        tokens, stats, log = chip.generate([(0, 12)])
        self.assertEqual(tokens, [chip.plain(0, 12)[0]])
        self.assertEqual([entry["shapes"] for entry in log[1:3]], [((0, 4),), ((4, 4),)])

    def test_a_waiting_request_takes_the_place_of_a_finished_one(self):
        chip = batch_runs.make_chip("structured", 1, 8, 0, 2)
        _, _, log = chip.generate([(0, 1), (1, 3), (2, 2), (3, 0), (4, 1)])
        self.assertEqual([entry["requests"] for entry in log[1:]], [[0, 1], [1, 2], [1, 2], [4]])

    def test_the_verilog_runs_a_batch_as_the_model_does(self):
        if hw.not_checked():
            self.skipTest(hw.not_checked())
        chip = batch_runs.make_chip("random", 1, 5, 1, 3)
        _, _, log = chip.generate([(0, 5), (5, 2), (9, 3)])
        records = [ga2_progs.record(entry["code"], entry["ext"][:4096], words=4096)
                   for entry in log]
        for ended in hw.replay(records, ext=4096).values():
            self.assertEqual((ended.status, ended.programs), (0, len(log)), ended.output)

    def test_the_weights_are_loaded_once(self):
        chip = batch_runs.make_chip("random", 1, 20)
        code = chip.batch_program(((12, 4), (7, 1), (0, 3))).code
        self.assertEqual(sum(ins["c"] == 256 for ins in code if ins["op"] == "LD") +
                         2 * sum(ins["c"] == 512 for ins in code if ins["op"] == "LD"), 9)

    def test_four_sequences_cost_what_the_model_says(self):
        chip = batch_runs.make_chip("random", 1, 20)
        one = cycle_counts(chip.plan.step(17).code)[0]
        for slots, k, expected in ((2, 0, 1.51), (2, 3, 2.89), (4, 0, 2.02), (4, 1, 2.61)):
            cycles = cycle_counts(chip.batch_program(((16, k + 1),) * slots).code)[0]
            self.assertAlmostEqual(slots * (k + 1) * one / cycles, expected, delta=0.02 * expected)


class Refusals(unittest.TestCase):
    def setUp(self):
        self.chip = batch_runs.make_chip("random", 1, 8, 3, 2)

    def refused(self, kind, words, requests):
        with self.assertRaises(kind) as caught:
            self.chip.generate(requests)
        self.assertEqual(str(caught.exception), words)
        self.assertEqual(self.chip.log, [])

    def test_requests_that_are_none(self):
        self.refused(ValueError, "request 1 is 7; a request is (start, n)", [(0, 1), 7])
        self.refused(ValueError, "request 0: start 16 is not a token; tokens are 0 to 15",
                     [(16, 1)])
        self.refused(ValueError, "request 0: n = -1 must be an integer, 0 or more", [(0, -1)])
        self.refused(CompileError, "request 1: token 65: its attention would sum over 65 rows of "
                     "values; the chip multiplies at most 64 (end the run at 64 tokens)",
                     [(0, 1), (0, 65)])

    def test_no_request_no_work(self):
        self.assertEqual(self.chip.generate([])[:2], ([], []))

    def test_no_slot(self):
        with self.assertRaises(ValueError) as caught:
            BatchChip(self.chip.m, self.chip.Wd, 8, 3, 0)
        self.assertEqual(str(caught.exception),
                         "slots = 0: a pass needs room for at least one sequence")

    def test_a_pass_that_does_not_fit_names_the_sequence_and_the_limit(self):
        with self.assertRaises(CompileError) as caught:
            self.chip.batch_program(((16, 8),) * 8)
        self.assertRegex(str(caught.exception),
                         r"^sequence \d \(8 rows behind 16\) does not fit beside the \d before it: "
                         r".*scratchpad.*; use fewer slots or guesses$")
        with self.assertRaises(CompileError) as caught:
            self.chip.batch_program(((62, 4),))
        self.assertRegex(str(caught.exception), "sequence 0 .* alone: token 66")


if __name__ == "__main__":
    unittest.main()
