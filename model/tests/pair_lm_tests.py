"""Tests of the two-token draft on the chip: its tables, what it is asked, what its log holds."""

import math
import unittest

import paths
import spec_lm
from capra_graph import mv
from ga2_isa import Machine
from pair_lm import PairChip, make_pair_draft, pair_tables
from tiny_lm import V, argmax, float_generate, make_model


def check_pairs():
    """A block's guesses are made after (before, last), each pair once in a run."""
    mdl = make_model("random", 2)
    chip = PairChip(mdl, 4, 3)
    asked = []

    def ask(before, tok):
        asked.append((before, tok))
        return (tok + 3) % V

    chip.ask = ask
    draft_after = chip.drafts()
    for tokens, pairs in (([7], [(None, 7), (7, 10), (10, 13)]),
                          ([7, 4], [(7, 4), (4, 7)]),
                          ([2, 7, 4], [])):
        asked.clear()
        draft = draft_after(tokens)
        guesses = tokens[-1:]
        for _ in range(3):
            guesses.append(draft(guesses[-1]))
        if asked != pairs:
            yield f"check_pairs: behind {tokens} it asks {asked}, not {pairs}"


class TwoTokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mdl = make_model("random", 2)
        cls.tables = pair_tables(cls.mdl)
        cls.bigram = spec_lm.bigram_table(cls.mdl)
        cls.followers = {}
        for start in range(V):
            run = float_generate(cls.mdl, start, 24)
            for before, t, j in zip(run, run[1:], run[2:]):
                cls.followers.setdefault((before, t), []).append(j)

    def test_256_entries_and_the_bigram_for_the_first_token(self):
        self.assertEqual(set(self.tables), set(range(V)) | {None})
        self.assertEqual(self.tables[None], self.bigram)

    def test_an_unknown_pair_has_the_bigrams_answer(self):
        for before in range(V):
            for t in range(V):
                if (before, t) not in self.followers:
                    for got, wanted in zip(self.tables[before][t], self.bigram[t]):
                        self.assertAlmostEqual(got, wanted, places=9)

    def test_a_known_pair_answers_with_its_commonest_follower(self):
        self.assertGreater(len(self.followers), 16)
        for (before, t), after in self.followers.items():
            top = max(after.count(j) for j in after)
            answer = argmax(self.tables[before][t])
            if top > len(after) / 2 + 1:
                self.assertEqual(after.count(answer), top, (before, t))

    def test_each_row_is_a_distribution(self):
        for L in self.tables.values():
            for row in L:
                total = math.fsum(math.exp(logit / 4) / V for logit in row)
                self.assertAlmostEqual(total, 1, places=9)

    def test_its_matrices_give_its_tables(self):
        W = make_pair_draft(self.mdl)
        for before in (None, 0, 11):
            for t in range(V):
                for got, wanted in zip(mv(self.mdl["E"][t], W[before]), self.tables[before][t]):
                    self.assertAlmostEqual(got, wanted, places=6)

    def test_no_pair_is_asked_twice_in_a_run(self):
        chip = PairChip(self.mdl, 12, 4)
        for _ in range(2):
            tokens, stats, log = chip.generate(0, 12)
            asked = [(entry["before"], entry["last"]) for entry in log if entry["kind"] == "draft"]
            self.assertEqual(len(asked), len(set(asked)))
            self.assertEqual(asked[0], (None, 0))
            self.assertEqual(tokens, chip.plain(0, 12)[0])

    def test_a_block_asks_after_the_last_two_tokens_each_pair_once_in_a_run(self):
        self.assertEqual(list(check_pairs()), [])

    def test_every_entry_of_the_log_replays_to_its_answer(self):
        chip = PairChip(self.mdl, 12, 3)
        tokens, _, log = chip.generate(4, 12)
        self.assertEqual({entry["kind"] for entry in log}, {"draft", "verify"})
        for entry in list(log):                 # asking again adds to it
            after = Machine(entry["ext"]).run(entry["code"]).ext
            if entry["kind"] == "verify":
                tok = chip._vprog(entry["c"], entry["m"]).ext["tok"]["addr"]
                self.assertEqual(after[tok], tokens[entry["c"] + 1])
            else:
                tok = chip.draft_program(entry["before"]).ext["tok"]["addr"]
                self.assertEqual(after[tok], chip.ask(entry["before"], entry["last"]))


if __name__ == "__main__":
    unittest.main()
