"""Ten one-line faults in slice_rows, from graph to address: does the compiler's battery notice?

    python3 tools/mut_ch16_compiler.py [--list] [--only N ...] [--out DIR]

Every mutant of Capra runs against the random graphs around slices, the slices that must be refused
and the random graphs without slices, in this order, up to the first problem. Results go to
out/mut_ch16_compiler.txt and .json; the last line is `10 of 10 caught`.
"""

import paths

import sys

import cli
import mutate
from mutate import Equivalent, Mutant

CHECKS = (
    "capra_tests.check_slices(range(100))",
    "capra_tests.check_slice_errors()",
    "capra_tests.check_many(range(20))",
)
SLICES = "capra_tests.check_slices"
ERRORS = "capra_tests.check_slice_errors"

MUTANTS = (
    Mutant("model/capra_memory.py",
           'offset = source.offset + node.attrs["start"] * node.shape[1]',
           "offset = source.offset",
           "placement: the view starts at its source's start", SLICES),
    Mutant("model/capra_memory.py",
           'offset = source.offset + node.attrs["start"] * node.shape[1]',
           'offset = source.offset + node.attrs["start"]',
           "placement: the offset is in words, not rows", SLICES),
    Mutant("model/capra_graph.py",
           'self._add("slice", [a], (count, columns),',
           'self._add("slice", [a], (rows, columns),',
           "graph: the shape keeps the source's rows", SLICES),
    Mutant("model/capra_run.py",
           'node.attrs["start"] + node.attrs["count"]]',
           'node.attrs["start"] + node.attrs["count"] + 1]',
           "interpreter: one row too many", SLICES),
    Mutant("model/capra_graph.py",
           'return ins[0][attrs["start"]:attrs["start"] + attrs["count"]]',
           'return ins[0][attrs["start"]:attrs["start"] + attrs["count"] - 1]',
           "floating point: one row too few", SLICES),
    Mutant("model/capra_scales.py",
           'SAME_NUMBERS = ("concat", "relu", "slice", "part", "output")',
           'SAME_NUMBERS = ("concat", "relu", "part", "output")',
           "scales: the view's scale is not tied to its source's", SLICES),
    Mutant("model/capra_graph.py",
           "if start < 0 or start + count > rows:",
           "if start < 0:",
           "refusal: a range past the end is accepted", ERRORS + ": a range past the end"),
    Mutant("model/capra_graph.py",
           "if count < 1:",
           "if count < 0:",
           "refusal: an empty slice is accepted", ERRORS + ": an empty range"),
    Mutant("model/capra_graph.py",
           'if self.nodes[part].op == "slice":',
           "if False:",
           "refusal: a slice may feed a concatenation", ERRORS + ": a slice in front"),
    Mutant("model/capra.py",
           "for i in node.ins:\n            self.load(",
           'for i in node.ins if node.op != "slice" else ():\n            self.load(',
           "loading: the source is not loaded before its view", SLICES),
)

EQUIVALENTS = (
    Equivalent("model/capra_memory.py",
               'if node.op in ("slice", "output"):',
               'if node.op in ("output",):',
               "placement: a slice first gets a buffer of its own, which is then replaced",
               "the place is only a table entry; the second loop overwrites it before any is read, "
               "as no concatenation or relu may take a slice"),
)


def main(argv=None):
    return mutate.run("mut_ch16_compiler", MUTANTS, EQUIVALENTS, ["model"],
                      mutate.python_checks(CHECKS), argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
