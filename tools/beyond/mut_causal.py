"""One-line faults in masked and causal softmaxes and in the decoder made of them: noticed?

    python3 tools/beyond/mut_causal.py [--list] [--only N ...] [--out DIR]

Every mutant runs against the batteries of causal_softmax and masked_softmax, part by part, and
against the tests of the faster decoder, up to the first problem. Results go to out/mut_causal.txt
and .json; the last line counts those caught.
"""

import paths

import sys

import cli
import mutate
from mutate import Equivalent, Mutant

GRAPHS = "causal_tests.check_graphs"
RULE = "causal_tests.check_rule"
JUNK = "causal_tests.check_junk"
VIEWS = "causal_tests.check_views"
ERRORS = "causal_tests.check_errors"
MASKED_GRAPHS = "masked_tests.check_graphs"
MASKED_ERRORS = "masked_tests.check_errors"
BLOCKS = "fast_lm_tests.check_blocks"
TOKENS = "fast_lm_tests.check_tokens"
TABLE = "fast_lm_tests.check_table"
PAIRS = "pair_lm_tests.check_pairs"
LEARNING = "policy_lm_tests.check_learning"
CHECKS = tuple(
    f"{name}(range(30))" for name in (GRAPHS, RULE, JUNK, VIEWS, MASKED_GRAPHS)) + tuple(
    f"{name}()" for name in (ERRORS, MASKED_ERRORS, BLOCKS, TOKENS, TABLE, PAIRS, LEARNING))

MUTANTS = (
    # The graph
    Mutant("model/capra_graph.py", "if first < 1:", "if first < 0:",
           "refusal: a first row that sees nothing is accepted", ERRORS),
    Mutant("model/capra_graph.py", "if first + rows - 1 > columns:", "if first > columns:",
           "refusal: a last row that sees past the end is accepted", ERRORS),
    Mutant("model/capra_graph.py", 'self._use("causal_softmax", a)',
           'self._node("causal_softmax", a)',
           "refusal: an argmax's indices are accepted", ERRORS),
    Mutant("model/capra_graph.py", "len(seen) == rows", "len(seen) >= rows",
           "refusal: columns for more rows than there are", MASKED_ERRORS),
    Mutant("model/capra_graph.py", "if not row:", "if row is None:",
           "refusal: a masked row that sees nothing is accepted", MASKED_ERRORS),
    Mutant("model/capra_graph.py", "is_integer(column) and 0 <= column < columns",
           "is_integer(column) and column < columns",
           "refusal: a negative column is accepted", MASKED_ERRORS),
    Mutant("model/capra_graph.py", "one >= two for one, two in zip(row, row[1:])",
           "one > two for one, two in zip(row, row[1:])",
           "refusal: a column named twice is accepted", MASKED_ERRORS),
    # Meaning
    Mutant("model/capra_graph.py", "seen=[tuple(range(first + i)) for i in range(rows)]",
           "seen=[tuple(range(first)) for i in range(rows)]",
           "causal: every row sees what the first sees", RULE),
    Mutant("model/capra_graph.py", "seen=[tuple(range(first + i)) for i in range(rows)]",
           "seen=[tuple(range(min(first + i + 1, columns))) for i in range(rows)]",
           "causal: a row sees one later column", VIEWS),
    Mutant("model/capra_graph.py", "softmax([row[column] for column in columns])",
           "softmax(row[:len(columns)])",
           "meaning: a row sees as many columns as it names, but the first", MASKED_GRAPHS),
    Mutant("model/capra_graph.py", "results[-1][column] = value",
           "results[-1][columns.index(column)] = value",
           "meaning: the probabilities stay side by side", MASKED_GRAPHS),
    # Scales
    Mutant("model/capra_scales.py", "        if node.op in SOFTMAXES:\n",
           '        if node.op == "softmax":\n',
           "scales: source and result are not pinned to the chip's", GRAPHS),
    Mutant("model/capra.py", "elif node.op in SOFTMAXES:", 'elif node.op == "softmax":',
           "constants: there are none for it", GRAPHS),
    # Instructions
    Mutant("model/capra.py", "src=scores + row + seen[0],", "src=scores + row,",
           "program: a run is taken for a prefix", MASKED_GRAPHS),
    Mutant("model/capra.py", "src=scores + row + seen[0],", "src=scores + seen[0],",
           "program: every row is a softmax of the first row's scores", GRAPHS),
    Mutant("model/capra.py", "if len(runs(seen)) > 1:", "if len(runs(seen)) > 2:",
           "program: two runs are not copied side by side", MASKED_GRAPHS),
    Mutant("model/capra.py", "scores + row + first - skipped, source + row + first, count,",
           "scores + row + first, source + row + first, count,",
           "program: the runs are copied, and not side by side", MASKED_GRAPHS),
    Mutant("model/capra.py", "in runs(seen)[1:]:", "in runs(seen)[2:]:",
           "program: the second run's probabilities do not go back", MASKED_GRAPHS),
    Mutant("model/capra.py", "probabilities[0] + r * columns + first - skipped,",
           "probabilities[0] + r * columns + first,",
           "program: they come from where they shall go", MASKED_GRAPHS),
    Mutant("model/capra.py", "in runs(sorted(set(range(columns)) - set(seen))):",
           "in runs(range(seen[-1] + 1, columns)):",
           "program: columns hidden between two runs are not cleared", MASKED_GRAPHS),
    Mutant("model/capra.py", "in runs(sorted(set(range(columns)) - set(seen))):",
           "in runs(range(seen[-1] + 2, columns)):",
           "program: the first hidden column is not cleared", GRAPHS),
    Mutant("model/capra.py", "self.requantize(row + first, row + first, count, ZERO)",
           "self.requantize(row + first, row + first, 1, ZERO)",
           "program: only the first hidden column of a run is cleared", GRAPHS),
    # The verifier made of it
    Mutant("model/beyond/fast_lm.py", "g.causal_softmax(scores, c + 1)",
           "g.causal_softmax(scores, max(c, 1))",
           "verifier: a row does not see itself", BLOCKS),
    Mutant("model/beyond/fast_lm.py", "g.causal_softmax(scores, c + 1)", "g.softmax(scores)",
           "verifier: every row sees the whole block", BLOCKS),
    Mutant("model/beyond/fast_lm.py", "scale=1 / math.sqrt(D)", "scale=1 / D",
           "verifier: the scores have another temperature", BLOCKS),
    # The host's part
    Mutant("model/beyond/policy_lm.py", "later: min(k, wanted - 1)", "later: min(k, wanted)",
           "clip: the last block brings one token too many", TOKENS),
    Mutant("model/beyond/fast_lm.py", "if self.table else", "if not self.table else",
           "table: asked for and not used", TOKENS),
    Mutant("model/beyond/pair_lm.py", "before = tokens[-2] if len(tokens) > 1 else None",
           "before = tokens[-1]",
           "two-token draft: the last token is taken for the one before", PAIRS),
    Mutant("model/beyond/policy_lm.py", "range(known, len(tokens)):", "range(1, len(tokens)):",
           "trust: what was judged before is judged again in each block", LEARNING),
)

EQUIVALENTS = (
    Equivalent("model/capra.py", "self.requantize(row + first, row + first, count, ZERO)",
               "self.requantize(row + first, source, count, ZERO)",
               "program: the zeros are made of other words",
               "any word times the mantissa 0 is 0, and the source is as long as its longest row"),
    Equivalent("model/capra.py", "ONE_TO_ONE = multiplier(1.0)", "ONE_TO_ONE = (1, 0)",
               "program: the copies are made with the mantissa 1",
               "both give the word itself, and the chip counts the same cycles"),
)


def main(argv=None):
    return mutate.run("mut_causal", MUTANTS, EQUIVALENTS, ["model", "tools"],
                      mutate.python_checks(CHECKS), argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
