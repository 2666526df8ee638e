"""Tests of the study ch16_policy: its means by hand, random model 1 beside its record."""

import json
import unittest

import paths
import ch16_policy
import cli
import policy_runs


class Policies(unittest.TestCase):
    def test_means_are_geometric_and_shares_are_of_hindsight(self):
        runs = [{policy: 8 * i for policy in (*ch16_policy.POLICIES, "limit")} for i in (1, 4)]
        row, = ch16_policy.mean_rows([{0: {"d": {**one, "plain": 32, "hindsight": 4}}}
                                      for one in runs], [0])
        self.assertEqual((row["runs"], row["planned"]), (2, {"speedup": 2.0, "share": 0.25}))

    def test_random_model_1_is_recorded_so_here_and_in_the_study_of_the_best_k(self):
        data, other = (json.loads((cli.OUT / f"{name}.json").read_text(encoding="utf-8"))
                       for name in ("ch16_policy", "ch16_best_k"))
        measured = policy_runs.measure_target("random 1")
        self.assertEqual(ch16_policy.target_rows([measured]), data["targets"][:1])
        cycles = measured[0]["bigram"]
        self.assertEqual(cycles["plain"], data["plain_cycles"][0])
        best = next(row for row in other["targets"] if row["name"] == "random 1")["bigram"]["host"]
        self.assertEqual(round(cycles["plain"] / cycles["best k afterwards"], 2), best)
        for runs in measured.values():
            for one in runs.values():
                self.assertEqual(min(one, key=one.get), "limit")
                self.assertLessEqual(one["hindsight"], min(one["planned"],
                                                           one["best k afterwards"]))

    def test_on_fresh_models_lookup_and_the_two_token_table_bring_what_the_readme_says(self):
        data = json.loads((cli.OUT / "ch16_policy.json").read_text(encoding="utf-8"))
        rows = {row["draft"]: row for row in data["fresh"]}
        for draft, least in (("lookup", 1.85), ("two-token", 2.3)):
            self.assertEqual(rows[draft]["runs"], 144)
            self.assertGreaterEqual(rows[draft]["planned"]["speedup"], least)
        self.assertGreaterEqual(rows["lookup"]["planned"]["share"], 0.9)


if __name__ == "__main__":
    unittest.main()
