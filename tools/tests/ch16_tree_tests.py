"""Tests of ch16_tree: its record agrees with itself; its other plans are what they claim."""

import json
import math
import unittest

import paths
import ch16_tree
import ch16_tree_figure
import cli
from tree_plan import Costs, Planner


def staircase(c, m):
    """Cycles of a chain on a chip whose rows come in fours."""
    return 4000 + 100 * m + 2000 * math.ceil(m / 4) + 10 * c


class Record(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = json.loads((cli.OUT / "ch16_tree.json").read_text(encoding="utf-8"))

    def recorded(self, name):
        return (cli.OUT / name).read_text(encoding="utf-8")

    def test_text_and_figure_are_drawn_from_the_recorded_numbers(self):
        self.assertEqual(ch16_tree.format_text(self.data), self.recorded("ch16_tree.txt"))
        block = ch16_tree.pictured(self.data["replayed"])
        self.assertEqual(ch16_tree_figure.block(block).render(), self.recorded("ch16_tree.svg"))

    def test_everything_is_proved_and_equal(self):
        self.assertEqual([row["faults"] for row in self.data["proof"]], [[]] * 4)
        self.assertEqual({row["equal"] for row in self.data["profiles"]}, {32})
        self.assertTrue(all(row["tokens_equal"] for row in self.data["replayed"]))
        self.assertEqual([(row["target"], row["draft"]) for row in self.data["replayed"]],
                         list(ch16_tree.REPLAYED))

    def test_trees_bring_a_draft_with_noise_4_to_one_and_a_half(self):
        run = next(row for row in self.data["replayed"] if row["draft"] == "noise 4")
        self.assertGreaterEqual(run["speedup"], 1.5)
        self.assertEqual(run["emitted"], 32)


class Plans(unittest.TestCase):
    def test_the_best_of_all_trees_is_the_plan_by_another_way(self):
        costs = Costs(staircase)
        for ranks in ([1.0], [0.75, 0.25], [0.5, 0.5]):
            plan = Planner(32, 6, [ranks] * len(ranks), costs)
            for w, best in enumerate(ch16_tree.best_of_all(ranks, costs), 1):
                self.assertTrue(math.isclose(best, plan.value[w][0], rel_tol=1e-12), (ranks, w))

    def test_a_search_that_stops_at_its_first_peak_stops_at_the_first_step(self):
        costs = Costs(staircase)
        blocks = [staircase(c, 4) for c in range(0, 32, 4)]
        self.assertEqual(ch16_tree.stopped([1.0], costs), sum(blocks))
        self.assertEqual(Planner(32, 16, [[1.0]], costs).value[32],
                         [staircase(0, 16) + staircase(16, 16)])

    def test_chances_add_up_and_fall(self):
        for likeliest in ch16_tree.LIKELIEST:
            ranks = ch16_tree.profile(likeliest)
            self.assertTrue(math.isclose(math.fsum(ranks), 1))
            self.assertEqual(ranks, sorted(ranks, reverse=True))

    def test_a_dearer_load_is_that_of_the_2304_weights(self):
        self.assertEqual(ch16_tree.load_cycles(), 2304 + 7 * (8 + 1 + 2))
        costs = ch16_tree.loaded({(3, 2): 9000}, 4)
        self.assertEqual(costs.tree(3, (None, 0)), 9000 + 3 * 2381)


if __name__ == "__main__":
    unittest.main()
