"""Tests of quick_chip: its programs are SpecChip's, so all it does is the same."""

import unittest

import paths
import spec_lm
from quick_chip import QuickChip
from tiny_lm import make_model

MODELS = (make_model(), make_model("random", 1), make_model("random", 3))


class Same(unittest.TestCase):
    def chips(self, n=6, starts=range(4)):
        """Pairs of a SpecChip and a QuickChip, whose rows the chips of a model share."""
        for mdl in MODELS:
            rows = {}
            for noise, k in ((0, 3), (4, 1), (6, 2)):
                Wd = spec_lm.make_draft(mdl, noise, 1)
                yield (spec_lm.SpecChip(mdl, Wd, n, k, starts),
                       QuickChip(mdl, Wd, n, k, rows, starts))

    def test_calibration_sees_the_same_blocks_and_ranges(self):
        for slow, quick in self.chips():
            self.assertEqual(quick.calib, slow.calib)
            self.assertEqual(quick.ranges, slow.ranges)

    def test_every_program_is_the_same_with_the_same_scales(self):
        for slow, quick in self.chips():
            self.assertEqual(quick.dprog.code, slow.dprog.code)
            self.assertTrue(slow.calib)
            for c, m in slow.calib:
                one, two = slow.compile(c, m), quick.compile(c, m)
                self.assertEqual((two.code, two.scale, two.constants),
                                 (one.code, one.scale, one.constants))

    def test_runs_are_the_same_tokens_statistics_and_programs(self):
        for slow, quick in self.chips():
            self.assertEqual(quick.generate(0, 6), slow.generate(0, 6))

    def test_a_block_that_calibration_did_not_meet_is_compiled_as_before(self):
        slow, quick = next(self.chips())
        self.assertNotIn((5, 1), slow.calib)
        self.assertEqual(quick.compile(5, 1).code, slow.compile(5, 1).code)

    def test_rows_are_shared_between_chips(self):
        mdl = MODELS[0]
        rows = {}
        perfect = spec_lm.make_draft(mdl, 0, 1)
        QuickChip(mdl, perfect, 6, 2, rows, range(4))
        before = len(rows)
        QuickChip(mdl, perfect, 6, 5, rows, range(4))
        self.assertEqual(before, 4 * 6)
        self.assertEqual(len(rows), 4 * 6)      # 6 rows from each start, however they are cut


if __name__ == "__main__":
    unittest.main()
