"""The cheapest tree of guesses, exactly.

What a tree T costs is known to the cycle. How likely its paths are, the draft says: p(j | t) is the
chance that token j comes after t, whatever came before. With w of n tokens still wanted (so
c = n - w are cached) and the last token t, the expected cycles to the end are

    V(0, t) = 0
    V(w, t) = min over trees T of cost(c, T) + sum over ends (i tokens, the last of them j) of T of
              P(the block ends there) * V(w - i, j)

Each row below the root saves something by itself: at depth d, with token u and the chance q that it
is on the accepted path, q * G(d, u), where

    G(d, u) = V(w - d, u) - sum over j of p(j | u) * V(w - d - 1, j)

is what it is worth to be one token further. The cost, too, is a sum over rows. T's m rows cost
what a chain of m rows costs, and more or less by what its rows see (masked_softmax):

    2 (d - i)                   row i at depth d sees i - d words fewer than a chain's row i
    12 b + 5 + c + 2 d - a      more, where its path jumps b > 0 times over rows, first behind a row
                                at depth a: its words are copied side by side and back

A child right below its parent's row is no jump. Each parent can have one such child. So the
cheapest order of rows is depth first, with a chosen first child, not always the likeliest.

For each m the best tree is a knapsack on the tree of all guesses: the best k rows from a guess on
are made of the best parts of its children. Three facts make it small.

    Jumps add up: a child that is not the first costs 12 for each row of its part. So a part need
    know of the path above it only whether that has jumped.
    Trees are nested: the best part of each size from a guess on is found once, from smaller parts.
    A leaf must earn its row: without it the block is cheaper by at least `least_row` cycles. So a
    guess from which no q * G reaches that is in no best tree.

At one depth at most max(G) / least_row guesses are left, as chances add up to 1. A plan of n tokens
takes n * V knapsacks of at most rows * max(G) / least_row guesses, rows**2 steps each: some
milliseconds a knapsack, and no more where a longer run is planned. tree_plan_tests compares with
all trees; under independence, p the same after every token, V(w, t) is V(w).
"""

import math
import operator

# ---- what a tree costs ---------------------------------------------------------------------------

def extra_cycles(parents, c):
    """Cycles of a tree's verifier behind c cached rows, less those of a chain of as many rows."""
    depth, jumps, bend = [0], [0], [0]          # bend: the depth of the last row before any jump
    extra = 0
    for row, parent in enumerate(parents[1:], 1):
        jumped = parent != row - 1
        depth.append(depth[parent] + 1)
        jumps.append(jumps[parent] + jumped)
        bend.append(bend[parent] if jumps[row] else depth[row])
        extra += 2 * (depth[row] - row)
        if jumps[row]:
            extra += 12 * jumps[row] + 5 + c + 2 * depth[row] - bend[row]
    return extra


class Costs:
    """Cycles of trees from those of chains: chain(c, m), infinite where there is no room."""

    def __init__(self, chain):
        self.known = {}
        self.ask = chain

    def chain(self, c, m):
        if (c, m) not in self.known:
            self.known[c, m] = self.ask(c, m)
        return self.known[c, m]

    def tree(self, c, parents):
        """Cycles of the verifier of a tree behind c cached rows."""
        return self.chain(c, len(parents)) + extra_cycles(parents, c)

    def least_row(self, c, rows):
        """Cycles that any leaf adds at least to a tree of up to `rows` rows behind c."""
        added = [self.chain(c, m) - self.chain(c, m - 1) - 2 * (m - 2)
                 for m in range(2, rows + 1) if self.chain(c, m) < math.inf]
        return min(added, default=math.inf)


# ---- the best tree of each size ------------------------------------------------------------------

class Guess:
    """A guess of the tree of all guesses that may pay; the root is the last token."""

    def __init__(self, token, depth, saved):
        self.token = token
        self.depth = depth
        self.saved = saved                      # expected cycles, of this row alone
        self.children = []


def candidates(token, followers, gains, least):
    """The tree of all guesses that may pay, from the root `token` on.

    followers[token]: [(chance, token)] of what may be guessed after it; gains[d - 1][token]: what a
    row of that token at depth d saves, if it is on the accepted path.
    """
    reach = [max(map(max, gains[d:])) for d in range(len(gains))]
    root = Guess(token, 0, 0.0)
    level = [(root, 1.0)]
    for depth, gain in enumerate(gains, 1):
        following = []
        for parent, certain in level:
            for chance, token in followers[parent.token]:
                chance *= certain
                if chance * reach[depth - 1] >= least:
                    guess = Guess(token, depth, chance * gain[token])
                    parent.children.append(guess)
                    following.append((guess, chance))
        level = following
    return root


def best_trees(guess, rows, c):
    """(straight, aside): {k: (cycles, tree)}, the cheapest tree of k <= rows rows from `guess` on.

    cycles: what depends on the shape, less what is saved; `straight` where the path to `guess` has
    no jump, `aside` where it has, without the cycles of the jumps above. tree: (guess, the trees of
    its children), the one directly below it first.
    """
    below = [(*best_trees(child, rows - 1, c),) for child in guess.children] if rows > 1 else []
    jump = 12 + 5 + c - guess.depth
    straight = knapsack(guess, 2 * guess.depth - guess.saved, rows,
                        [(on, dearer(off, jump)) for on, off in below])
    aside = knapsack(guess, 4 * guess.depth - guess.saved, rows,
                     [(off, dearer(off, 12)) for _, off in below])
    return straight, aside


def dearer(trees, row):
    """The trees, each of their rows `row` cycles dearer."""
    return {k: (cycles + row * k, tree) for k, (cycles, tree) in trees.items()}


def knapsack(guess, own, rows, children):
    """{k: (cycles, tree)}: the row `guess` for `own` cycles, and the best parts of its children.

    children: [(its trees directly below `guess`, its trees behind a jump)].
    """
    without = {1: (own, (guess,))}              # no child lies directly below
    trees = {}                                  # one does; it need not be the likeliest
    for first, later in children:
        trees = cheaper(trees, joined(trees, later, rows),
                        {k: (cycles, (guess, part[-1], *part[1:-1])) for k, (cycles, part)
                         in joined(without, first, rows).items()})
        without = cheaper(without, joined(without, later, rows))
    return {1: (own, (guess,)), **trees}


def joined(trees, parts, rows):
    """{k: the cheapest of one of `trees` with one of `parts` as its last child}."""
    found = {}
    for size, (cycles, tree) in trees.items():
        for k, (more, part) in parts.items():
            if size + k <= rows and (size + k not in found or cycles + more < found[size + k][0]):
                found[size + k] = cycles + more, (*tree, part)
    return found


def cheaper(*tables):
    """{k: the cheapest entry}; the first of equals."""
    return {k: min((table[k] for table in tables if k in table), key=lambda entry: entry[0])
            for k in sorted(set().union(*tables))}


def ordered(tree):
    """(parents, guesses): the rows of a tree, depth first."""
    parents, guesses = [], []

    def add(tree, parent):
        row = len(parents)
        parents.append(parent)
        guesses.append(tree[0])
        for part in tree[1:]:
            add(part, row)

    add(tree, None)
    return tuple(parents), guesses


# ---- the cheapest block, and the run -------------------------------------------------------------

def best_block(c, token, followers, value, further, rows, costs):
    """(expected cycles to the end, parents, guesses) of the cheapest tree behind c cached rows.

    value[w'][t]: V(w', t) for all w' below the w still wanted; further[w'][t]: what it is one token
    later, expected. followers: see candidates.
    """
    w = len(value)
    gains = [[here - later for here, later in zip(value[w - d], further[w - d])]
             for d in range(1, min(w, rows))]
    root = candidates(token, followers, gains, costs.least_row(c, rows))
    best, shape = math.inf, None
    for k, (cycles, tree) in best_trees(root, rows, c)[0].items():
        total = costs.chain(c, k) - k * (k - 1) + cycles + further[w][token]
        if total < best:
            best, shape = total, tree
    parents, guesses = ordered(shape)
    return best, parents, [guess.token for guess in guesses[1:]]


class Planner:
    """The cheapest blocks of runs of n tokens: planner(tokens) -> (parents, guesses) of the next.

    rows: the most a block may have; chances[t][j]: that token j comes after t, each row adding up
    to 1; alternatives: the most guesses after one token (1: the cheapest chains).
    value[w][t]: V(w, t).
    """

    def __init__(self, n, rows, chances, costs, alternatives=None):
        self.n = n
        followers = [sorted(((chance, token) for token, chance in enumerate(row)),
                            key=lambda pair: (-pair[0], pair[1]))[:alternatives] for row in chances]
        self.value = [[0.0] * len(chances)]
        self.blocks = [None]                    # by w: (parents, guesses) for each token
        further = [None]
        for w in range(1, n + 1):
            further.append([math.fsum(map(operator.mul, row, self.value[w - 1]))
                            for row in chances])
            best = [best_block(n - w, token, followers, self.value, further, rows, costs)
                    for token in range(len(chances))]
            self.value.append([cycles for cycles, _, _ in best])
            self.blocks.append([block for _, *block in best])

    def __call__(self, tokens):
        return self.blocks[self.n + 1 - len(tokens)][tokens[-1]]
