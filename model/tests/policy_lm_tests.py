"""Tests of the policies: how many guesses, what a block costs, and how far a draft is trusted."""

import itertools
import time
import unittest

import paths
import spec_lm
from capra import CompileError
from fast_lm import FastChip
from policy_lm import MOST, clipped, fixed, follow, planned, prices, trusted
from tiny_lm import make_model


def likeliest(w, c, chances, cost, later):
    """(expected cycles, k) with w tokens to go, every outcome followed to the end of the run."""
    best = []
    for k in range(min(len(chances), w - 1) + 1):
        cycles = cost(c, k + 1)
        for kept in range(k + 1):
            chance = 1.0
            for i in range(kept):
                chance *= chances[i]
            if kept < k:
                chance *= 1 - chances[kept]
            left = w - 1 - kept
            if left:
                cycles += chance * likeliest(left, c + 1 + kept, [later] * (left - 1), cost,
                                             later)[0]
        best.append((cycles, k))
    return min(best)


def check_learning():
    """A draft trusts the same whether a run is taken in at once or token by token."""
    run = [3, 7, 7, 1, 7, 3, 7, 2, 7]
    once, each = (trusted(lambda tokens: (tokens[-1] + 4) % 8, 2) for _ in range(2))
    for i in range(1, len(run)):
        each(run[:i], 4)
    if each(run, 4) != once(run, 4):
        yield f"check_learning: token by token {each(run, 4)}, at once {once(run, 4)}"


class Policies(unittest.TestCase):
    def test_fixed_and_clipped(self):
        for policy, ks in ((fixed(3), [3, 3, 3, 3]), (clipped(3), [0, 1, 3, 3])):
            self.assertEqual([policy(wanted, [0.1], 0.1) for wanted in (1, 2, 4, 9)], ks)

    def test_planned_is_the_best_of_all_plans_followed_to_the_end(self):
        costs = (lambda c, m: 60 + 20 * m + c * m, lambda c, m: 50 + 40 * -(-m // 4) + c,
                 lambda c, m: 100 - 3 * c + 7 * m * m)
        chosen = set()
        for cost, later, w in itertools.product(costs, (0.0, 0.4, 0.9, 1.0), (1, 2, 5, 7)):
            for chances in ([], [0.9] * 6, [0.2] * 6, [1.0, 0.1, 1.0, 0.9, 0.3], [0.6]):
                k = planned(8, cost)(w, chances, later)
                self.assertEqual(k, likeliest(w, 8 - w, chances, cost, later)[1],
                                 (w, chances, later))
                chosen.add(k)
        self.assertEqual(chosen, {0, 1, 2, 3, 4, 6})

    def test_two_tokens_worked_out_by_hand(self):
        costs = {(0, 1): 10, (1, 1): 10, (0, 2): 14}
        policy = planned(2, lambda c, m: costs[c, m])
        self.assertEqual(policy(2, [0.39], 0), 0)       # 14 + 0.61 * 10 is more than 10 + 10
        self.assertEqual(policy(2, [0.41], 0), 1)

    def test_rows_that_cost_nothing_are_all_used_and_rows_that_cost_a_step_never(self):
        many = [0.5] * MOST
        self.assertEqual(planned(20, lambda c, m: 100)(20, many, 0.5), MOST)
        self.assertEqual(planned(20, lambda c, m: 100)(4, many, 0.5), 3)
        self.assertEqual(planned(20, lambda c, m: 100 * m)(20, [0.9] * MOST, 0.9), 0)

    def test_follow_hands_the_draft_the_tokens_and_the_policy_what_the_draft_says(self):
        seen = []

        def ahead(tokens, most):
            seen.append((tokens, most))
            return [(5, 0.5), (6, 0.25)][:most], 0.125

        def policy(wanted, chances, later):
            seen.append((wanted, chances, later))
            return 9

        k, draft = follow(8, policy, ahead)([1, 2, 3])
        self.assertEqual(seen, [([1, 2, 3], 5), (6, [0.5, 0.25], 0.125)])
        self.assertEqual((k, draft(3), draft(5)), (2, 5, 6))
        seen.clear()
        self.assertEqual(follow(40, policy, ahead)([1])[0], 2)
        self.assertEqual(seen[0], ([1], MOST))


class Prices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        mdl = make_model()
        cls.chip = FastChip(mdl, spec_lm.make_draft(mdl, 0, 1), 64, 3)

    def test_they_are_the_programs_cycles(self):
        price = prices(self.chip.cost)
        checked = 0
        for m in range(1, MOST + 2):
            for c in (0, 1, 2 + m % 2, 7, 18 + m % 4, 64 - m):
                try:
                    cycles = self.chip.cost(c, m)
                except CompileError:
                    self.assertGreater(c, 20)           # no room in the scratchpad
                    continue
                self.assertEqual(price(c, m), cycles, (c, m))
                checked += 1
        self.assertGreaterEqual(checked, 5 * (MOST + 1))

    def test_four_programs_for_each_number_of_rows(self):
        asked = []

        def cost(c, m):
            asked.append((c, m))
            return 1000 * m + c

        price = prices(cost)
        for m in range(1, MOST + 2):
            for c in range(65 - m):
                price(c, m)
        self.assertLessEqual(len(asked), 4 * (MOST + 1) + MOST + 1)
        self.assertEqual(len({m for _, m in asked}), MOST + 1)
        self.assertTrue(all(c <= 6 for c, _ in asked))

    def test_64_tokens_are_planned_within_a_second(self):
        mdl = make_model()
        chip = FastChip(mdl, spec_lm.make_draft(mdl, 0, 1), 2, 1)
        began = time.process_time()
        policy = planned(64, prices(chip.cost))
        for wanted in range(64, 0, -1):
            policy(wanted, [0.7] * MOST, 0.7)
        self.assertLess(time.process_time() - began, 1)


class Trust(unittest.TestCase):
    def test_it_is_counted_at_every_token_whoever_made_the_blocks(self):
        guesses, later = trusted(lambda tokens: 7, 1)([3, 7, 7, 1], 2)
        # judged: behind 3 right, behind 7 right, behind 7 wrong
        trust = (2 + 0.8 * 3) / (3 + 3)
        self.assertAlmostEqual(later, trust)
        self.assertEqual([token for token, _ in guesses], [7, 7])
        self.assertAlmostEqual(guesses[0][1], trust)    # behind 1 nothing was judged
        self.assertAlmostEqual(guesses[1][1], (1 + 2 * trust) / (2 + 2))

    def test_a_run_taken_in_at_once_or_token_by_token_is_the_same(self):
        self.assertEqual(list(check_learning()), [])

    def test_a_draft_without_a_guess_is_not_judged(self):
        ahead = trusted(lambda tokens: 4 if len(tokens) == 3 else None, 1)
        for tokens, guesses in (([1, 2], 0), ([1, 2, 3], 1)):
            told, later = ahead(tokens, 5)
            self.assertEqual(len(told), guesses)
            self.assertAlmostEqual(later, 0.8)
        self.assertAlmostEqual(ahead([1, 2, 3, 5], 5)[1], 0.8 * 3 / 4)

    def test_a_draft_that_turns_right_is_used_again(self):
        """Wrong for tokens 1 to 15, right from 16 on: no guess is made, and it still comes back."""
        run = [token % 5 for token in range(33)]
        ahead = trusted(lambda tokens: len(tokens) % 5 if len(tokens) > 15 else 9, 1)
        policy = planned(32, lambda c, m: 7000 + 2000 * m)
        next_block = follow(32, policy, ahead)
        ks = [next_block(run[:i])[0] for i in range(1, 32)]
        self.assertEqual(ks[12:15], [0, 0, 0])
        self.assertGreater(min(ks[21:28]), 0)


if __name__ == "__main__":
    unittest.main()
