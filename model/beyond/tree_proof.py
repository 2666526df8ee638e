"""The proof of exact_proof for trees: each row is the plain step at the end of its own path.

The words of x now belong to a node of the tree of all texts: the cached positions, then the root,
then a child's number at every fork. Two siblings stand at one position with different words. On
these symbols

    steps   the plain step runs at each node, its cache the key and value terms of the steps before
            it on the way from the beginning
    trees   the verifier of a tree behind c cached rows runs on the words of its rows; row i's
            logits, token, key and value must be the terms of the step at its node

and the scales that cross the host must be alike, as in exact_proof. What the host does with the
rows, tree_lm_tests tries on all small trees.
"""

import itertools

from exact_proof import OUTPUTS, Terms, not_returning, other_scales, outputs

SMALL = 6                                       # rows up to which every tree is proved


def all_trees(m):
    """The parents of every tree of m rows in order: (m - 1)! of them."""
    return [(None, *rest) for rest in itertools.product(*(range(i) for i in range(1, m)))]


def random_tree(R, m):
    """The parents of a tree of m rows, drawn by the generator `R`: long chains, fans, any."""
    kind = R.randrange(3)
    parents = [None]
    for row in range(1, m):
        nearby = range(max(0, row - 2), row) if kind == 0 else range(row)
        parents.append(R.choice(nearby if kind < 2 else range((row + 1) // 2)))
    return tuple(parents)


def nodes(parents):
    """The name of each row: the numbers of the children on the way to it."""
    names = [()]
    for row, parent in enumerate(parents[1:], 1):
        names.append((*names[parent], parents[:row].count(parent)))
    return names


class Texts:
    """The plain steps at nodes, each run once: rows(c, name) -> {output: its row of terms}."""

    def __init__(self, chip):
        self.chip = chip
        self.terms = Terms()
        self.known = {}

    def x(self, c, name):
        """The words of x at a node behind c cached rows; of the cached position c for name None."""
        return [self.terms.number("x", (c, name), column) for column in range(16)]

    def rows(self, c, name=None):
        """The outputs of the plain step there."""
        if (c, name) not in self.known:
            behind = [self.rows(i) for i in range(c)]
            if name is not None:
                behind += [self.rows(c, name[:i]) for i in range(len(name))]
            inputs = {"x": [self.x(c, name)]}
            if behind:
                inputs["kc"] = [row["k_new"] for row in behind]
                inputs["vc"] = [row["v_new"] for row in behind]
            P = self.chip.plan.step(len(behind) + 1)
            self.known[c, name] = {output: rows[0] for output, rows
                                   in outputs(P, self.terms, inputs).items()}
        return self.known[c, name]


def unproved(chip, trees):
    """Sentences on programs of `chip`, a TreeChip, that do not compute the plain steps' integers.

    trees: [(c, parents)].
    """
    texts = Texts(chip)
    first = chip.plan.step(1)
    problems = not_returning(first)
    for c, parents in trees:
        P = chip.program(c, parents)
        where = f"the tree {list(parents)} behind {c}"
        problems += other_scales(P, first, where)
        names = nodes(parents)
        inputs = {"x": [texts.x(c, name) for name in names]}
        if c:
            inputs["kc"] = [texts.rows(i)["k_new"] for i in range(c)]
            inputs["vc"] = [texts.rows(i)["v_new"] for i in range(c)]
        block = outputs(P, texts.terms, inputs)
        for output in OUTPUTS:
            wrong = [row for row, name in enumerate(names)
                     if block[output][row] != texts.rows(c, name)[output]]
            if wrong:
                problems.append(f"{where}: {output} of row {wrong[0]} is not what the step behind "
                                "its ancestors computes")
    return problems
