"""One-line faults in the trees of guesses, of the kinds that engines shipped: are they noticed?

    python3 tools/beyond/mut_tree.py [--list] [--only N ...] [--json] [--out DIR]

Every mutant runs against the checks of tree_lm_tests and tree_plan_tests, up to the first problem.
Results go to out/mut_tree.txt and .json; the last line counts those caught.
"""

import sys

import paths
import cli
import mutate
from mutate import Equivalent, Mutant

TREE = "model/beyond/tree_lm.py"
PLAN = "model/beyond/tree_plan.py"
ERRORS = "tree_lm_tests.check_errors"
HOST = "tree_lm_tests.check_host"
CHAINS = "tree_lm_tests.check_chains"
NUMBERS = "tree_lm_tests.check_numbers"
TOKENS = "tree_lm_tests.check_tokens"
PROOF = "tree_lm_tests.check_proof"
UNPROVED = "tree_lm_tests.check_unproved"
COSTS = "tree_plan_tests.check_costs"
LEAVES = "tree_plan_tests.check_leaves"
BEST = "tree_plan_tests.check_best"
KNAPSACK = "tree_plan_tests.check_knapsack"
BOUND = "tree_plan_tests.check_bound"
CHECKS = tuple(f"{name}()" for name in (ERRORS, HOST, CHAINS, NUMBERS, PROOF, UNPROVED, COSTS,
                                        LEAVES, BOUND, BEST, KNAPSACK, TOKENS))

MUTANTS = (
    # The accepted path
    Mutant(TREE, "kc = kc + [k_rows[row] for row in path]", "kc = kc + k_rows[:len(path)]",
           "cache: the accepted path's keys are taken as a dense prefix of the block", HOST),
    Mutant(TREE, "vc = vc + [v_rows[row] for row in path]", "vc = vc + v_rows[:len(path)]",
           "cache: so are its values", HOST),
    Mutant(TREE, "kc = kc + [k_rows[row] for row in path]", "kc = kc + k_rows[:path[-1] + 1]",
           "cache: the stale rows of refused siblings stay", HOST),
    Mutant(TREE, "vc = vc + [v_rows[row] for row in path]",
           "vc = vc + [v_rows[parents[row] or 0] for row in path]",
           "cache: an accepted row's values are its parent's", HOST),
    Mutant(TREE, "[toks[row] for row in path[1:]]", "toks[1:len(path)]",
           "tokens: the accepted guesses are taken as the first of the block", HOST),
    Mutant(TREE, "[choice[path[-1]]]", "[choice[len(path) - 1]]",
           "tokens: the free one comes from the row with the path's length", HOST),
    Mutant(TREE, "parent == path[-1] and toks[row]", "parent == path[0] and toks[row]",
           "acceptance: only children of the root are followed", HOST),
    Mutant(TREE, "parent == path[-1] and toks[row]", "row > path[-1] and toks[row]",
           "acceptance: any later row with the chosen token will do", TOKENS),
    Mutant(TREE, "== choice[path[-1]]]", "== choice[row - 1]]",
           "acceptance: a row is compared with the choice of the row before it, as in a chain",
           HOST),
    Mutant(TREE, "len(path) - 1, len(new)", "len(path), len(new)",
           "statistics: the root counts as accepted", HOST),
    # What a row sees
    Mutant(TREE, "found.append(([] if parent is None else found[parent]) + [row])",
           "found.append(list(range(row + 1)))",
           "mask: siblings are seen, as in a chain", NUMBERS),
    Mutant(TREE, "found.append(([] if parent is None else found[parent]) + [row])",
           "found.append(([] if parent is None else found[parent][:1]) + [row])",
           "mask: of its ancestors a row sees the root alone", CHAINS),
    Mutant(TREE, "found.append(([] if parent is None else found[parent]) + [row])",
           "found.append(([] if parent is None else found[max(0, parent - (row - parent > 1))])"
           " + [row])",
           "mask: behind a sibling, a row sees the row before its parent instead", NUMBERS),
    Mutant(TREE, "[c + row for row in path]", "[c + row for row in path[:-1] or [0]]",
           "mask: a row does not see itself", CHAINS),
    Mutant(TREE, "seen = [list(range(c))", "seen = [list(range(c - (len(parents) > 1)))",
           "mask: the last cached row is not seen", CHAINS),
    # Refusals
    Mutant(TREE, "0 <= parent < row", "0 <= parent <= row",
           "refusal: a row that is its own parent is accepted", ERRORS),
    Mutant(TREE, "if parent is None:\n", "if parent is ...:\n",
           "refusal: a second root is told as another fault", ERRORS),
    Mutant(TREE, "if c + m > K_MAX:", "if c + m > K_MAX + 1:",
           "refusal: one row too many for the matrix unit is left to it", ERRORS),
    Mutant(TREE, "first.setdefault((parent, token), row)", "first.setdefault((row, token), row)",
           "refusal: two children with one token are accepted", ERRORS),
    # The proof
    Mutant("model/beyond/tree_proof.py", "parents[:row].count(parent)", "0",
           "proof: siblings have the same words", UNPROVED),
    Mutant("model/beyond/tree_proof.py", "self.rows(c, name[:i]) for i in range(len(name))",
           "self.rows(c, name[:i]) for i in range(len(name) - 1)",
           "proof: a step lacks its parent", PROOF),
    # The plan
    Mutant(PLAN, "jumped = parent != row - 1", "jumped = False",
           "costs: copying side by side is free", COSTS),
    Mutant(PLAN, "12 + 5 + c - guess.depth", "5 + c - guess.depth",
           "plan: a first jump costs less than it does", BEST),
    Mutant(PLAN, "dearer(off, 12)", "dearer(off, 0)",
           "plan: further jumps are free", KNAPSACK),
    Mutant(PLAN, "4 * guess.depth - guess.saved", "2 * guess.depth - guess.saved",
           "plan: rows that see more beside a jump cost no more", BEST),
    Mutant(PLAN, "return min(added, default=math.inf)", "return max(added, default=math.inf)",
           "plan: guesses that pay are left out", LEAVES),
    Mutant(PLAN, "chance *= certain", "chance *= certain ** 2",
           "plan: the chance of a guess's parent counts twice", BEST),
    Mutant(PLAN, "zip(value[w - d], further[w - d])", "zip(value[w - d], further[w - d + 1])",
           "plan: a row is worth what the row above it is", BEST),
    Mutant(PLAN, "if chance * reach[depth - 1] >= least:", "if 4 * chance * reach[0] >= least:",
           "plan: guesses are looked at that cannot pay", BOUND),
)

EQUIVALENTS = (
    Equivalent(PLAN, "trees = cheaper(trees, joined(trees, later, rows),",
               "trees = cheaper(joined(trees, later, rows), trees,",
               "plan: of two equally cheap trees the other is taken",
               "its cycles are the same, and so is what comes after it on average"),
)


def main(argv=None):
    return mutate.run("mut_tree", MUTANTS, EQUIVALENTS, ["model", "tools"],
                      mutate.python_checks(CHECKS), argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
