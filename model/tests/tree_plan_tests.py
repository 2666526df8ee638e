"""Tests of the cheapest tree: its cost, and that no tree at all is cheaper.

Its parts, each of which returns its problems:

1. check_costs    cycles of every tree of up to 5 rows, and of larger ones, are the program's
2. check_best     V equals the best of all trees, its sum written out over the ways a block can end
3. check_knapsack the best trees of each size are the best of all orders of all rows
4. check_leaves   no leaf adds less than `least_row` says
5. check_bound    no more guesses are looked at than the docstring says
"""

import itertools
import math
import random
import unittest

import paths
import spec_lm
import tree_plan
from tiny_lm import make_model
from tree_lm import TreeChip, chain
from tree_plan import Costs, Guess, Planner, best_trees, extra_cycles, ordered
from tree_proof import all_trees, random_tree

CHAINS = ([[1.0]], [[0.8, 0.2], [0.8, 0.2]], [[0.5, 0.5], [0.9, 0.1]],
          [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.4, 0.3, 0.3]])
CHIP = []


def chip():
    """A chip whose programs' cycles are known, made once."""
    if not CHIP:
        mdl = make_model()
        CHIP.append(TreeChip(mdl, spec_lm.make_draft(mdl, 0, 1), 12, 16))
    return CHIP[0]


# ---- 1 -------------------------------------------------------------------------------------------

def check_costs():
    """The formula against compiled programs."""
    R = random.Random(3)
    trees = [(c, parents) for c in (0, 6) for m in range(1, 6) for parents in all_trees(m)]
    trees += [(R.randrange(20), random_tree(R, m)) for m in range(6, 17)]
    for c, parents in trees:
        said, cycles = chip().costs.tree(c, parents), chip().cost(c, parents)
        if said != cycles:
            yield f"check_costs: {list(parents)} behind {c}: {said} cycles, the program's {cycles}"


# ---- 2 -------------------------------------------------------------------------------------------

def check_best(n=7, rows=4):
    """Every tree of up to `rows` rows, with every choice of tokens, in every order of rows."""
    for chances in CHAINS:
        planner = Planner(n, rows, chances, chip().costs)
        value = [[0.0] * len(chances)]
        for w in range(1, n + 1):
            value.append([])
            for token in range(len(chances)):
                best = min(expected(n, w, parents, toks, chances, value)
                           for parents, toks in all_blocks(token, rows, len(chances)))
                value[w].append(best)
                if not math.isclose(planner.value[w][token], best, rel_tol=1e-12):
                    yield (f"check_best: {chances}, {w} to go after {token}: "
                           f"{planner.value[w][token]} cycles, the best of all trees {best}")
                parents, guesses = planner.blocks[w][token]
                own = expected(n, w, parents, [token] + guesses, chances, value)
                if not math.isclose(own, best, rel_tol=1e-12):
                    yield f"check_best: {chances}, {w} to go: its tree {parents} comes to {own}"


def all_blocks(token, rows, tokens):
    """(parents, tokens) of every tree whose siblings differ."""
    for m in range(1, rows + 1):
        for parents in all_trees(m):
            for guesses in itertools.product(range(tokens), repeat=m - 1):
                if len(set(zip(parents[1:], guesses))) == m - 1:
                    yield parents, [token, *guesses]


def expected(n, w, parents, toks, chances, value):
    """Cycles to the end: the block's own, then those of every way it can end."""
    if depth_of(parents) >= w:
        return math.inf                         # its deepest rows come too late to bring a token
    total = chip().costs.tree(n - w, parents)
    for row in range(len(parents)):
        chance, above = 1.0, row
        depth = 0
        while parents[above] is not None:
            chance *= chances[toks[parents[above]]][toks[above]]
            above = parents[above]
            depth += 1
        children = [toks[i] for i, parent in enumerate(parents) if parent == row]
        for token, follows in enumerate(chances[toks[row]]):
            if token not in children:
                total += chance * follows * value[w - depth - 1][token]
    return total


def depth_of(parents):
    depth = [0]
    for parent in parents[1:]:
        depth.append(depth[parent] + 1)
    return max(depth)


# ---- 3 -------------------------------------------------------------------------------------------

def check_knapsack():
    """Forks of forks and random trees, of 7 guesses that save little, so that the shape decides."""
    R = random.Random(6)
    for c in range(12):
        guesses = [Guess(0, 0, 0.0)]
        for token in range(1, 8):
            above = guesses[(token - 1) // 2] if c % 2 else R.choice(guesses[-3:])
            guesses.append(Guess(token, above.depth + 1, R.randrange(8, 80)))
            above.children.append(guesses[-1])
        found = {k: cycles - k * (k - 1)
                 for k, (cycles, _) in best_trees(guesses[0], 8, c)[0].items()}
        best = {}
        for parents, saved in all_orders(guesses[0]):
            cycles = extra_cycles(parents, c) - saved
            best[len(parents)] = min(best.get(len(parents), math.inf), cycles)
        if found != best:
            yield f"check_knapsack: behind {c}: {found}, the best of all orders {best}"


def all_orders(root):
    """(parents, what is saved) of every order of every tree of the root and guesses below it."""
    def grow(rows, parents, saved):
        yield tuple(parents), saved
        for row, guess in enumerate(rows):
            for child in guess.children:
                if child not in rows:
                    yield from grow([*rows, child], [*parents, row], saved + child.saved)

    yield from grow([root], [None], root.saved)


# ---- 4 -------------------------------------------------------------------------------------------

def check_leaves():
    """Every leaf of every tree of up to 6 rows, taken out."""
    costs = chip().costs
    for c in (0, 9):
        least = costs.least_row(c, 6)
        for parents in (tree for m in range(2, 7) for tree in all_trees(m)):
            for leaf in set(range(1, len(parents))) - set(parents):
                rest = [parent if parent is None or parent < leaf else parent - 1
                        for row, parent in enumerate(parents) if row != leaf]
                added = costs.tree(c, parents) - costs.tree(c, rest)
                if added < least:
                    yield f"check_leaves: row {leaf} of {list(parents)} adds {added}, not {least}"


# ---- 5 -------------------------------------------------------------------------------------------

def check_bound():
    """On flat and on peaked chances, 16 tokens."""
    for power in (0, 0.5, 1, 3):
        weights = [2.0 ** (-power * j) for j in range(16)]
        total = math.fsum(weights)
        followers = [[(weight / total, j) for j, weight in enumerate(weights)]] * 16
        gains = [[4000.0 + 10 * j for j in range(16)] for _ in range(15)]
        root = tree_plan.candidates(0, followers, gains, 230)
        level, most = root.children, 4150 / 230
        for depth in range(1, 16):
            if len(level) > most:
                yield f"check_bound: power {power}: {len(level)} guesses at depth {depth}"
            level = [child for guess in level for child in guess.children]


# ---- tests ---------------------------------------------------------------------------------------

class Plan(unittest.TestCase):
    def test_the_formula_gives_the_programs_cycles(self):
        self.assertEqual(list(check_costs()), [])

    def test_no_tree_is_cheaper(self):
        self.assertEqual(list(check_best()), [])

    def test_no_other_order_or_choice_of_rows_is_cheaper(self):
        self.assertEqual(list(check_knapsack()), [])

    def test_every_leaf_costs_the_least_row(self):
        self.assertEqual(list(check_leaves()), [])

    def test_the_guesses_looked_at_are_bounded(self):
        self.assertEqual(list(check_bound()), [])

    def test_a_perfect_draft_gets_chains_that_fill_the_row_tiles(self):
        planner = Planner(12, 16, [[1.0]], chip().costs)
        sizes = []
        w = 12
        while w:
            parents, guesses = planner.blocks[w][0]
            self.assertEqual(parents, chain(len(parents)))
            sizes.append(len(parents))
            w -= len(parents)
        self.assertEqual(sizes, [12])

    def test_a_draft_that_knows_nothing_gets_no_row(self):
        planner = Planner(8, 16, [[1 / 16] * 16] * 16, chip().costs)
        self.assertEqual([planner.blocks[w][3] for w in range(1, 9)], [[(None,), []]] * 8)

    def test_one_alternative_makes_chains(self):
        planner = Planner(8, 8, CHAINS[3], chip().costs, alternatives=1)
        self.assertTrue(all(parents == chain(len(parents))
                            for blocks in planner.blocks[1:] for parents, _ in blocks))

    def test_the_first_child_need_not_be_the_likeliest(self):
        root, likely, other = Guess(0, 0, 0.0), Guess(1, 1, 500.0), Guess(2, 1, 490.0)
        root.children, other.children = [likely, other], [Guess(3, 2, 480.0)]
        cycles, tree = best_trees(root, 8, 5)[0][4]
        parents, guesses = ordered(tree)
        self.assertEqual((parents, [guess.token for guess in guesses]),
                         ((None, 0, 1, 0), [0, 2, 3, 1]))
        self.assertEqual(cycles, extra_cycles(parents, 5) + 2 * (1 + 2 + 3) - 500 - 490 - 480)

    def test_costs_ask_once_for_each_chain(self):
        asked = []
        costs = Costs(lambda c, m: asked.append((c, m)) or 100 * m)
        self.assertEqual([costs.tree(2, chain(3)), costs.tree(2, (None, 0, 0))],
                         [300, 300 - 2 + 21])
        self.assertEqual(asked, [(2, 3)])


if __name__ == "__main__":
    unittest.main()
