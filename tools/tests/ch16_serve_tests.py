"""Tests of the serving study: the queue by hand, its theory, and the cost of a pass."""

import random
import unittest

import paths
import ch16_serve
import serving
from serving import Request, Served, simulate

ALL_RIGHT = [7] * 32
ALL_WRONG = [0] * 32


def rows_cost(shapes):
    """10 a pass and 1 a row."""
    return 10 + sum(m for _, m in shapes)


class Queue(unittest.TestCase):
    def test_a_request_alone(self):
        served = simulate([Request(5.0, 3, ALL_WRONG)], 2, rows_cost, *serving.fixed(0))
        self.assertEqual(served, [Served(5.0, 16.0, 38.0, 3)])

    def test_right_guesses_end_it_sooner_and_the_last_block_is_clipped(self):
        seen = []
        served = simulate([Request(0.0, 5, ALL_RIGHT)], 1, rows_cost, serving.fixed(2)[0],
                          lambda *one: seen.append(one))
        self.assertEqual(seen, [([(0, 3)], 2, 2), ([(3, 2)], 1, 1)])
        self.assertEqual(served, [Served(0.0, 13.0, 25.0, 5)])

    def test_a_wrong_guess_ends_what_is_looked_at(self):
        seen = []
        simulate([Request(0.0, 4, [1, 0, 0, 0])], 1, rows_cost, serving.fixed(3)[0],
                 lambda *one: seen.append(one))
        self.assertEqual(seen, [([(0, 4)], 1, 2), ([(2, 2)], 0, 1), ([(3, 1)], 0, 0)])

    def test_who_comes_first_is_served_first_and_joins_at_the_next_pass(self):
        requests = [Request(0.0, 2, ALL_WRONG), Request(1.0, 1, ALL_WRONG),
                    Request(2.0, 1, ALL_WRONG)]
        served = simulate(requests, 2, rows_cost, *serving.fixed(0))
        # 0 to 11: the first alone; 11 to 23: first and second; 23 to 34: the third
        self.assertEqual(served, [Served(0.0, 11.0, 23.0, 2), Served(1.0, 23.0, 23.0, 1),
                                  Served(2.0, 34.0, 34.0, 1)])

    def test_the_chip_waits_for_whom_there_is(self):
        served = simulate([Request(0.0, 1, ALL_WRONG), Request(100.0, 1, ALL_WRONG)], 1,
                          rows_cost, *serving.fixed(0))
        self.assertEqual([one.end for one in served], [11.0, 111.0])


class Policies(unittest.TestCase):
    def running(self, count):
        return [serving.Running(Request(0.0, 32, ALL_RIGHT)) for _ in range(count)]

    def test_by_load_guesses_less_when_rows_are_full(self):
        def full_rows(shapes):                  # past 8 rows each costs as much as a token
            rows = sum(m for _, m in shapes)
            return 100 + 100 * max(0, rows - 8)

        choose, _ = serving.by_load(full_rows)
        self.assertEqual(choose(self.running(1)), 7)
        self.assertEqual(choose(self.running(4)), 1)
        self.assertEqual(choose(self.running(8)), 0)

    def test_by_load_learns_from_what_was_kept(self):
        choose, record = serving.by_load(lambda shapes: 10 + shapes[0][1])
        self.assertEqual(choose(self.running(1)), 7)
        record([(0, 8)], 0, 990)
        self.assertEqual(choose(self.running(1)), 0)

    def test_it_looks_again_after_a_while(self):
        choose, record = serving.by_load(lambda shapes: 10 + shapes[0][1])
        record([(0, 8)], 0, 990)
        chosen = [choose(self.running(1)) for _ in range(2 * serving.EXPLORE)]
        self.assertEqual(sorted(set(chosen)), [0, 1])
        self.assertEqual(chosen.count(1), 2)

    def test_expected_tokens(self):
        self.assertEqual(serving.expected(1, 3), 4.0)
        self.assertAlmostEqual(serving.expected(0.5, 2), 1.75)


class Numbers(unittest.TestCase):
    def test_figures_by_hand(self):
        served = [Served(0.0, 2.0, 8.0, 4), Served(1.0, 5.0, 5.0, 1), Served(2.0, 4.0, 10.0, 3)]
        report = serving.figures(served)
        self.assertEqual(report["throughput"], 8 / 10)
        self.assertEqual(report["first"], {"mean": 8 / 3, "median": 2.0, "p99": 4.0})
        self.assertEqual(report["between"], {"mean": 2.5, "median": 2.0, "p99": 3.0})
        self.assertEqual(report["end"]["p99"], 8.0)

    def test_arrivals_have_the_rate_that_was_asked_for(self):
        requests = serving.poisson(20000, 0.25, 3, lambda R: (1, []))
        self.assertAlmostEqual(requests[-1].arrival / 20000, 4.0, delta=0.1)
        self.assertEqual(requests, serving.poisson(20000, 0.25, 3, lambda R: (1, [])))

    def test_the_formula_is_that_of_constant_service(self):
        """M/D/1 waits rho / (2 (1 - rho)) services."""
        self.assertAlmostEqual(serving.pollaczek_khinchine(0.05, [10.0]), 10 * 0.5 / (2 * 0.5))
        with self.assertRaises(ValueError):
            serving.pollaczek_khinchine(0.1, [10.0])

    def test_the_queue_is_that_of_the_formula(self):
        check = ch16_serve.measure_theory(1)
        self.assertLessEqual(abs(check["simulated"] - check["formula"]), check["half"])
        self.assertLess(check["half"], 0.1 * check["formula"])


class Cost(unittest.TestCase):
    def test_a_pass_costs_the_sum_of_its_parts(self):
        cost = ch16_serve.Cost(ch16_serve.make_chip(1))
        R = random.Random(9)
        for _ in range(12):
            mix = [(R.randrange(20), R.randint(1, 5)) for _ in range(R.randint(1, 4))]
            self.assertEqual(cost(mix), cost.program(mix), mix)

    def test_right_guesses_are_those_of_the_chips_own_runs(self):
        chip = ch16_serve.make_chip(1)
        right = ch16_serve.right_guesses(chip)
        for start in (0, 9):
            chip.k, chip.slots = 3, 1
            _, _, log = chip.generate([(start, 16)])
            place = 0
            for entry in log[1:]:
                (c, m), = entry["shapes"]
                self.assertEqual(c, place)
                place += min(m - 1, right[start][c]) + 1
            self.assertEqual(place, 16)


if __name__ == "__main__":
    unittest.main()
