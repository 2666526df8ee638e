"""The studies beyond the chapter: a share of each comes out as it is recorded in out/."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import paths
import ch16_batch                               # first: it sets how much memory there is
import ch16_best_k
import ch16_exact
import ch16_fast
import ch16_fast_figures
import ch16_policy
import ch16_sample
import ch16_serve
import ch16_tree
import cli

LAST = list(ch16_best_k.SWEEPS)[-1]
FORM = "seeded, likeliest"
ONE_FORM = {name: {FORM: getattr(ch16_sample, name)[FORM]} for name in ("FORMS", "LOOKS")}
ONE = ch16_exact.Part(("random 4",), (("noise 0", 1),), (0,), 6)
# Study; its picture, of what; constants made smaller; parts whose rows are then some of those
# recorded. The picture of ch16_tree: ch16_tree_tests.
SHARES = (
    (ch16_policy, ch16_policy.picture, "means", {"TARGETS": ["random 1"], "FRESH": ["random 25"]},
     "plain_cycles targets"),
    (ch16_fast, ch16_fast_figures.bars, "runs", {"RUNS": ch16_fast.RUNS},
     "runs pairs contexts table refusals"),
    (ch16_best_k, ch16_fast_figures.sweeps, "sweeps",
     {"NOISES": (3,), "RANDOMS": (2,), "SWEEPS": {LAST: ch16_best_k.SWEEPS[LAST]}},
     "plain_cycles blocks right sweeps targets"),
    (ch16_tree, None, "", {"NOISES": (4,), "RANDOMS": range(1, 2), "LIKELIEST": (0.7,),
                           "PROOFS": {"drawn": [("samples", 1)]}, "SAMPLES": 5,
                           "REPLAYED": ch16_tree.REPLAYED[:1]},
     "profiles runs replayed"),
    (ch16_sample, ch16_sample.figure, "table",
     {"TARGETS": ("random 1", "structured"), "TEMPERATURES": (0.3, 0.15), "GUESSES": (3,),
      "EQUAL": {"tokens": 6, "k": (3,), "starts": (5,), "seeds": (2,)},
      "LAWS": (("rejection", (1,), ("fitted",), ((9, 0.08),)),), **ONE_FORM},
     "laws focus limit"),
    (ch16_batch, ch16_batch.figure, "table",
     {"SHARES": 1, "TARGETS": (1,), "REQUESTS": [(0, 24), (2, 24)],
      "share": lambda items, number: list(items)[100:109]}, "cycles refusals table causes border"),
    (ch16_serve, ch16_serve.figure, "chip",
     {"TARGETS": (7,), "LOADS": (0.95,), "MIXES": 10, "QUEUES": 2}, "chip large"),
    (ch16_exact, None, "", {"SLICE": ch16_exact.SLICE._replace(targets=("random 4",)),
                            "GRID": ONE, "TAGS": ONE, "PROVED": ()}, "slice"),
)


def within(made, recorded):
    """Whether each entry of `made` is recorded so, but for sums; in a list, at any place."""
    if isinstance(made, dict):
        return all(within(made[key], recorded[key]) for key in made if key not in ("total", "by_k"))
    return made == recorded or isinstance(made, list) and all(one in recorded for one in made)


class Studies(unittest.TestCase):
    def test_a_share_comes_out_as_recorded(self):
        for study, draw, drawn, smaller, parts in SHARES:
            name = study.__name__
            old = {path.suffix: path.read_text(encoding="utf-8")
                   for path in cli.OUT.glob(f"{name}.*")}
            recorded = json.loads(old[".json"])
            with self.subTest(study=name), tempfile.TemporaryDirectory() as folder:
                if draw:
                    self.assertEqual(draw(recorded[drawn]).render(), old[".svg"])
                text = (study.format_all(recorded, "") if study is ch16_exact else
                        study.format_text(recorded))
                self.assertEqual(text, old[".txt"])
                with mock.patch.multiple(study, **smaller), \
                        contextlib.redirect_stdout(io.StringIO()) as printed:
                    self.assertEqual(study.main(["--sim", "none", "--out", folder]), 0)
                new = {path.suffix: path.read_text(encoding="utf-8")
                       for path in Path(folder).iterdir()}
                self.assertEqual((set(new), new[".txt"]), (set(old), printed.getvalue()))
                for part in parts.split():
                    self.assertTrue(within(json.loads(new[".json"])[part], recorded[part]), part)

    def test_a_load_otherwise_than_alone_is_a_fault(self):
        with mock.patch("batch_runs.wrong_load", return_value=(["wrong"], 3)), \
                mock.patch.multiple(ch16_batch, LOADS=2, SHARES=1):
            self.assertEqual(ch16_batch.measure_loads(0), (2, 6, ["wrong"] * 2))


if __name__ == "__main__":
    unittest.main()
