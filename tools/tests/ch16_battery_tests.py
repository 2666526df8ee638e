"""Tests of tools/ch16_battery.py: it reports what the battery finds, and fails with it."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import paths
import capra
import ch16_battery


class Battery(unittest.TestCase):
    def run_it(self):
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                status = ch16_battery.main(["--out", folder])
            rows = json.loads((Path(folder) / "ch16_battery.json").read_text(encoding="utf-8"))
            text = (Path(folder) / "ch16_battery.txt").read_text(encoding="utf-8")
        self.assertEqual(text, printed.getvalue())
        return status, rows, text

    def test_it_passes_and_tells_the_worst_error_beside_its_bound(self):
        status, rows, text = self.run_it()
        self.assertEqual((status, [row["problems"] for row in rows]), (0, [[]] * 5))
        for row in rows[:2]:
            self.assertLess(0.01, row["worst"])
            self.assertLess(row["worst"], row["bound"])
            self.assertRegex(text, rf"(?m)^{row['battery']} .* {row['worst']:.3f} ")
        self.assertEqual([row["bound"] for row in rows[:2]], [0.16, 0.40])

    def test_it_fails_where_a_bad_slice_is_accepted(self):
        with mock.patch.object(ch16_battery, "GRAPHS", 1), \
                mock.patch.object(capra.Graph, "slice_rows", lambda self, a, start, count: a):
            status, rows, text = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("slices to refuse: an empty range: accepted\n", text)


if __name__ == "__main__":
    unittest.main()
