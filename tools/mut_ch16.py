"""One-line faults in speculative decoding: do the five checks notice?

    python3 tools/mut_ch16.py [--list] [--only N ...] [--out DIR]

Nineteen mutants of spec_lm, each against the five checks of spec_tests.check_all(), one by one in
their order up to the first problem, so that the check that caught it is named. Further mutants,
which are not counted, also meet the tests in spec_lm_tests. Results go to out/mut_ch16.txt and
.json; the last line is `19 of 19 caught`.
"""

import paths

import sys

import cli
import mutate
from mutate import Mutant

BLOCK = "spec_tests.block_equals_steps"
EXACT = "spec_tests.exact_in_floating_point"
CAUSAL = "spec_tests.causal_on_the_chip"
VERIFIER = "spec_tests.verifier_means_it"
RULE = "spec_tests.rule_through_the_chip"
UNITS = "spec_lm_tests.failures"
CHECKS = tuple(f"{name}()" for name in (BLOCK, EXACT, CAUSAL, VERIFIER, RULE, UNITS))

FILE = "model/spec_lm.py"

MUTANTS = (
    # The accept rule
    Mutant(FILE, "    return accepted\n",
           "    return min(accepted + 1, len(guesses))\n",
           "accept rule: one guess too many", EXACT),
    Mutant(FILE, "    accepted = 0\n",
           "    accepted = min(1, len(guesses))\n",
           "accept rule: the first guess is unchecked", EXACT),
    Mutant(FILE, "guesses[accepted] == choice[accepted]:",
           "guesses[accepted] == choice[accepted + 1]:",
           "accept rule: guess i against row i + 1", EXACT),
    Mutant(FILE, "guesses[accepted] == choice[accepted]:",
           "guesses[accepted] != choice[accepted]:",
           "accept rule: it stops at the first agreement", EXACT),
    # The bonus token, which is the target's choice after the last accepted guess
    Mutant(FILE, "+ [choice[accepted]]",
           "+ [(guesses + choice[-1:])[accepted]]",
           "bonus token: the draft's instead of the target's", EXACT),
    Mutant(FILE, "+ [choice[accepted]]",
           "+ [choice[max(accepted - 1, 0)]]",
           "bonus token: from the previous row", EXACT),
    Mutant(FILE, "guesses[:accepted] + [choice[accepted]]",
           "guesses[:accepted] or [choice[accepted]]",
           "bonus token: not appended behind accepted guesses", "emitted = accepted + blocks"),
    # The cache
    Mutant(FILE, "kept = accepted + 1 ",
           "kept = len(block) ",
           "cache: the rejected rows are kept", EXACT),
    Mutant(FILE, "kept = accepted + 1 ",
           "kept = accepted ",
           "cache: the bonus token's row is dropped", EXACT),
    Mutant(FILE, "kc + k_rows, vc + v_rows",
           "kc + v_rows, vc + k_rows",
           "cache: keys and values are swapped", EXACT),
    # The block and the draft chain
    Mutant(FILE, "verify(len(kc), block, kc, vc)",
           "verify(len(kc), guesses + block[:1], kc, vc)",
           "block: the last token is not first, but last", EXACT),
    Mutant(FILE, "draft(block[-1])",
           "draft(block[0])",
           "draft chain: every guess is made from the committed token", RULE),
    # The verifier
    Mutant(FILE, "seen = c + i + 1\n",
           "seen = min(c + i + 2, c + m)\n",
           "verifier: a row sees one later row", CAUSAL),
    Mutant(FILE, "seen = c + i + 1\n",
           "seen = max(c + i, 1)\n",
           "verifier: a row cannot see itself", VERIFIER),
    Mutant(FILE, "g.slice_rows(values, 0, seen)",
           "values",
           "verifier: the values see everything (the compiler refuses the shapes)", CAUSAL,
           "crash"),
    Mutant(FILE, "g.slice_rows(q, i, 1)",
           "g.slice_rows(q, 0, 1)",
           "verifier: every query is row 0's", VERIFIER),
    Mutant(FILE, "g.concat_rows(rows, row)",
           "g.concat_rows(row, rows)",
           "verifier: the rows are concatenated in reverse", CAUSAL),
    # The float block and the draft's table
    Mutant(FILE, "if j <= c + i else",
           "if j < c + len(toks) else",
           "float block: the mask lets a row see the whole block", BLOCK),
    Mutant(FILE, "if j == f_next(t) else",
           "if j == (f_next(t) + 1) % V else",
           "draft table: f(t) + 1", RULE),
)


# Not among the chapter's nineteen. The twentieth passes all five checks: no draft can change a
# token. The rest are faults in the host loop, the draft and the books that the nineteen leave out.
FURTHER = tuple(mutant._replace(further=True) for mutant in (
    Mutant(FILE, "count[t][j] += 1",
           "count[j][t] += 1",
           "the twentieth: the draft's table counts the pairs backwards",
           UNITS),
    Mutant(FILE, "return tokens[:n + 1],",
           "return tokens,",
           "host loop: more tokens than asked for", EXACT),
    Mutant(FILE, "verify(len(kc), block, kc, vc)",
           "verify(len(kc), block, kc[:k + 1], vc[:k + 1])",
           "host loop: right in the first block only, the cache does not grow", EXACT),
    Mutant(FILE, "while accepted < len(guesses) and",
           "while accepted < len(guesses) - 1 and",
           "accept rule: never all k guesses", RULE),
    Mutant(FILE, "kc, vc, verify, draft)\n        tokens",
           "kc, vc, verify, lambda tok: draft(tokens[-2:][0] if tok == tokens[-1] else tok))\n"
           "        tokens",
           "draft chain: the first guess is made from the token before the last", RULE),
    Mutant("model/tiny_lm.py", "return row.index(max(row))",
           "return max(range(len(row)), key=lambda j: (row[j], j))",
           "choice: the last of equal largest logits", UNITS + ": test_the_draft_takes_the_first"),
    Mutant(FILE, "while len(tokens) <= n:",
           "while len(tokens) <= max(n, 1):",
           "host loop: a block is run for no tokens asked for",
           UNITS + ": test_a_perfect_draft_needs_the_fewest"),
    Mutant(FILE, 'stats["proposed"] += proposed',
           'stats["proposed"] += proposed + 1',
           "books: the last token counted as a guess", EXACT),
    Mutant(FILE, '("verify", len(kc), k + 1)',
           '("verify", len(tokens), k + 1)',
           "calls: cached rows miscounted", UNITS + ": test_more_guesses_than_tokens_left"),
    Mutant(FILE, 'check_token("the draft\'s guess", draft(block[-1]))',
           "draft(block[-1])",
           "draft: a token outside the vocabulary is taken",
           UNITS + ": test_a_draft_outside_the_vocabulary"),
    Mutant(FILE, "pivot = max(range(j, n), key=lambda i: abs(rows[i][j]))",
           "pivot = j",
           "solve: no pivoting", UNITS + ": test_solve_exchanges_rows"),
))


def main(argv=None):
    return mutate.run("mut_ch16", MUTANTS + FURTHER, (), ["model", "tools"],
                      mutate.python_checks(CHECKS), argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
