"""One-line faults in causal_softmax and in the decoder made of it: do their tests notice?

    python3 tools/beyond/mut_causal.py [--list] [--only N ...] [--json] [--out DIR]

Every mutant runs against the battery of causal_softmax, part by part, and against the tests of
the faster decoder, up to the first problem. Results go to out/mut_causal.txt and .json; the last
line is `23 of 23 caught`.
"""

import sys

import paths
import cli
import mutate
from mutate import Equivalent, Mutant

GRAPHS = "causal_tests.check_graphs"
RULE = "causal_tests.check_rule"
JUNK = "causal_tests.check_junk"
VIEWS = "causal_tests.check_views"
ERRORS = "causal_tests.check_errors"
BLOCKS = "fast_lm_tests.check_blocks"
TOKENS = "fast_lm_tests.check_tokens"
TABLE = "fast_lm_tests.check_table"
PAIRS = "fast_lm_tests.check_pairs"
LEARNING = "fast_lm_tests.check_learning"
CHECKS = tuple(f"{name}(range(30))" for name in (GRAPHS, RULE, JUNK, VIEWS)) + tuple(
    f"{name}()" for name in (ERRORS, BLOCKS, TOKENS, TABLE, PAIRS, LEARNING))

MUTANTS = (
    # The graph
    Mutant("model/capra_graph.py", "if first < 1:", "if first < 0:",
           "refusal: a first row that sees nothing is accepted", ERRORS),
    Mutant("model/capra_graph.py", "if first + rows - 1 > columns:", "if first > columns:",
           "refusal: a last row that sees past the end is accepted", ERRORS),
    Mutant("model/capra_graph.py", 'self._use("causal_softmax", a)',
           'self._node("causal_softmax", a)',
           "refusal: an argmax's indices are accepted", ERRORS),
    # Meaning
    Mutant("model/capra_graph.py", "softmax_row(row[:first + i])", "softmax_row(row[:first])",
           "floating point: every row sees what the first sees", GRAPHS),
    Mutant("model/capra_run.py", 'row[:node.attrs["first"] + i]', 'row[:node.attrs["first"]]',
           "interpreter: every row sees what the first sees", GRAPHS),
    Mutant("model/capra_run.py", 'row[:node.attrs["first"] + i]',
           'row[:node.attrs["first"] + i + 1]',
           "interpreter: a row sees one later column", GRAPHS),
    # Scales
    Mutant("model/capra_scales.py", "        if node.op in SOFTMAXES:\n",
           '        if node.op == "softmax":\n',
           "scales: source and result are not pinned to the chip's", GRAPHS),
    Mutant("model/capra.py", "elif node.op in SOFTMAXES:", 'elif node.op == "softmax":',
           "constants: there are none for it", GRAPHS),
    # Instructions
    Mutant("model/capra.py", 'seen = node.attrs["first"] + r', 'seen = node.attrs["first"]',
           "program: every row sees what the first sees", GRAPHS),
    Mutant("model/capra.py", 'seen = node.attrs["first"] + r',
           'seen = min(node.attrs["first"] + r + 1, columns)',
           "program: a row sees one later column", GRAPHS),
    Mutant("model/capra.py", 'seen = node.attrs["first"] + r',
           'seen = max(node.attrs["first"] + r - 1, 1)',
           "program: a row does not see its own column", GRAPHS),
    Mutant("model/capra.py", "row = r * columns", "row = r * seen",
           "program: rows lie as far apart as they are long", GRAPHS),
    Mutant("model/capra.py", "src=source + row, len=seen", "src=source, len=seen",
           "program: every row is a softmax of the first row's scores", GRAPHS),
    Mutant("model/capra.py", "if seen < columns:", "if seen < columns - 1:",
           "program: a single hidden column is not cleared", GRAPHS),
    Mutant("model/capra.py", "if seen < columns:", "if False:",
           "program: hidden columns are not cleared", GRAPHS),
    Mutant("model/capra.py", "source + row + seen, columns - seen,", "source + row + seen, 1,",
           "program: only the first hidden column is cleared", GRAPHS),
    # The verifier made of it
    Mutant("model/beyond/fast_lm.py", "g.causal_softmax(scores, c + 1)",
           "g.causal_softmax(scores, max(c, 1))",
           "verifier: a row does not see itself", BLOCKS),
    Mutant("model/beyond/fast_lm.py", "g.causal_softmax(scores, c + 1)", "g.softmax(scores)",
           "verifier: every row sees the whole block", BLOCKS),
    Mutant("model/beyond/fast_lm.py", "scale=1 / math.sqrt(D)", "scale=1 / D",
           "verifier: the scores have another temperature", BLOCKS),
    # The host's part
    Mutant("model/beyond/fast_lm.py", "min(k, wanted - 1)", "min(k, wanted)",
           "clip: the last block brings one token too many", TOKENS),
    Mutant("model/beyond/fast_lm.py", "if self.table else", "if not self.table else",
           "table: asked for and not used", TOKENS),
    Mutant("model/beyond/pair_lm.py", "before = tokens[-2] if len(tokens) > 1 else None",
           "before = tokens[-1]",
           "two-token draft: the last token is taken for the one before", PAIRS),
    Mutant("model/beyond/adaptive_lm.py", "self.refused += accepted < proposed",
           "self.refused += proposed - accepted",
           "adaptive k: guesses nobody looked at count as refused", LEARNING),
)

EQUIVALENTS = (
    Equivalent("model/capra.py", "source + row + seen, columns - seen,",
               "source + row, columns - seen,",
               "program: the zeros are made of the row's visible scores",
               "any word times the mantissa 0 is 0, and the row's scores are all readable"),
    Equivalent("model/capra.py", "ZERO = (0, 0)", "ZERO = (1, 0)",
               "program: hidden columns first hold their scores",
               "a score is at most 127 and so, as a probability in steps of 1/65536, less than "
               "half a level of the result: the last requantization makes it 0"),
)


def main(argv=None):
    return mutate.run("mut_causal", MUTANTS, EQUIVALENTS, ["model", "tools"],
                      mutate.python_checks(CHECKS), argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
