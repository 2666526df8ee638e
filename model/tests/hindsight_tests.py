"""Tests of hindsight: against every sequence of blocks, and `play` against the chip."""

import random
import unittest

import paths
import spec_lm
from exact_lm import ExactChip
from fast_lm import FastChip, unweighed
from hindsight import hindsight, play, right_guesses
from host_lm import TableChip
from lookup_lm import LookupChip
from pair_lm import PairChip
from policy_lm import clipped, fixed, follow
from tiny_lm import make_model


def every_sequence(n):
    """Every [k of each block] that a run of n tokens may take, were all guesses right."""
    if n == 0:
        yield []
    for k in range(n):
        for rest in every_sequence(n - 1 - k):
            yield [k] + rest


class Hindsight(unittest.TestCase):
    def test_it_is_the_cheapest_of_all_sequences_played(self):
        """Each sequence is played by the decoder itself on the known target."""
        R = random.Random(4)
        for trial in range(12):
            n = 9
            tokens = [R.randrange(3) for _ in range(n + 1)]
            answers = {i: [R.randrange(3) for _ in range(n)] for i in range(1, n + 1)}

            def ahead(so_far, most):
                return [(token, 0.5) for token in answers[len(so_far)][:most]], 0.5

            costs = {}
            for c in range(n):
                for m in range(1, n + 1):           # any costs at all that grow with m
                    costs[c, m] = costs.get((c, m - 1), R.randrange(90)) + R.randrange(1, 40)
            found = []
            for ks in every_sequence(n):
                left = list(ks)

                def policy(wanted, chances, later):
                    return min(left.pop(0) if left else 0, wanted - 1)

                found.append(play(tokens, n, follow(n, policy, ahead),
                                  lambda c, m: costs[c, m])[1])
            cycles, ks = hindsight(n, right_guesses(tokens, n, ahead), lambda c, m: costs[c, m])
            self.assertEqual(cycles, min(found))
            self.assertEqual(sum(ks) + len(ks), n)

    def test_right_guesses_ends_at_the_first_wrong_one_and_at_the_last_token(self):
        tokens = [0, 1, 2, 9, 4]

        def ahead(so_far, most):
            return [(len(so_far) + i, 0.5) for i in range(most)], 0.5

        self.assertEqual(right_guesses(tokens, 4, ahead), [2, 1, 0, 0])


class Play(unittest.TestCase):
    def test_statistics_and_cycles_are_the_chips(self):
        n, mdl = 13, make_model("random", 2)
        exact = ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), n + 6, 3)
        plain, _ = exact.plain(0, n + 6)
        first = FastChip(mdl, exact.Wd, n, 4, share=exact)
        chips = {
            "clipped": first,
            "fixed": FastChip(mdl, exact.Wd, n, 4, share=first, clip=False),
            "two-token on the chip": PairChip(mdl, n, 4, share=first),
            "table": TableChip(mdl, n, 15, share=first),
            "lookup": LookupChip(mdl, n, 6, share=first),
        }
        for name, chip in chips.items():
            tokens, stats, log = chip.generate(0, n)
            cycles = spec_lm.cycles_of([entry for entry in log if entry["kind"] == "verify"])
            self.assertEqual(tokens, plain[:n + 1], name)
            self.assertEqual(play(plain, n, chip.next_block(n), chip.cost), (stats, cycles), name)

    def test_a_policy_blind_to_chances_takes_the_drafts_answers(self):
        tokens = [0, 1, 2, 3, 4, 5]
        draft_after = lambda so_far: lambda tok: tok + 1
        for policy, rows in ((clipped(3), [4, 1]), (fixed(4), [5])):
            seen = []
            play(tokens, 5, unweighed(5, policy, draft_after), lambda c, m: seen.append(m) or m)
            self.assertEqual(seen, rows)


if __name__ == "__main__":
    unittest.main()
