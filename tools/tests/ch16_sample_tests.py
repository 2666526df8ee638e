"""Tests of the study ch16_sample: how it counts, and what the record must say."""

import json
import unittest

import paths
import ch16_sample
import cli
from ga2_isa import build

HALT = [build("HALT")]                          # a program of 2 cycles


def block(c, m):
    return {"kind": "verify", "code": HALT, "c": c, "m": m}


class Counting(unittest.TestCase):
    def test_a_guess_is_looked_at_until_the_first_that_is_refused(self):
        # 3 guesses, 2 kept; 3 guesses, none kept; 1 guess, kept; none
        log = [{"kind": "table", "code": HALT}, block(0, 4), block(3, 4), block(4, 2), block(6, 1)]
        total = ch16_sample.tally([({"cache": 7, "emitted": 7}, log, [block(0, 1)] * 7)])
        self.assertEqual(total, {"kept": 3, "looked_at": 5, "blocks": 4, "emitted": 7,
                                 "cycles": 10, "plain": 14})
        self.assertEqual(ch16_sample.rates(total), {"kept": 0.6, "per_block": 1.75, "speedup": 1.4})

    def test_later_blocks_replace_the_rows_of_refused_guesses(self):
        log = [dict(block(0, 3), weights=["a", "b", "c"]), dict(block(1, 2), weights=["d", "e"])]
        self.assertEqual(ch16_sample.kept_rows(log), ["a", "d", "e"])

    def test_the_drafts_of_the_laws_differ_as_their_names_say(self):
        class Chip:
            table = [[8, 1, 4, 0] + [0] * 12] * 16
            plain_weights = staticmethod(lambda tokens: [tokens[0]] * 16)

        drafts = ch16_sample.law_drafts(Chip)
        self.assertEqual(drafts["hostile"][0][:4], [0, 7, 4, 8])
        self.assertEqual(drafts["with zeros"][0][:4], [8, 0, 4, 0])
        self.assertEqual(drafts["the target's"][5], [5] * 16)

    def test_the_forms_are_what_their_names_say(self):
        for name, form in ch16_sample.FORMS.items():
            self.assertEqual(form, (name.partition(",")[0], "likeliest" in name))


class Record(unittest.TestCase):
    """What the README says of the recorded study."""

    def setUp(self):
        self.data = json.loads((cli.OUT / "ch16_sample.json").read_text(encoding="utf-8"))

    def test_every_seed_and_every_law_is_plain_samplings(self):
        self.assertGreaterEqual(self.data["seeds"]["runs"], 2000)
        self.assertEqual(self.data["seeds"]["equal"], self.data["seeds"]["runs"])
        self.assertGreaterEqual(len(self.data["laws"]), 24)
        self.assertEqual({row["variation"] for row in self.data["laws"]}, {"0"})

    def test_the_speedups(self):
        fitted = {row["form"]: row["speedup"] for row in self.data["focus"]
                  if row["draft"] == "fitted"}
        self.assertGreaterEqual(fitted["rejection"], 1.9)
        self.assertGreaterEqual(fitted["seeded"], 1.65)


if __name__ == "__main__":
    unittest.main()
