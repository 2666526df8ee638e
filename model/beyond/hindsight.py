"""Hindsight: the fewest cycles that any choice of blocks needs for one run and one draft.

The target's tokens are known and so are the draft's answers, so a block's outcome is known, too.
With r_i the guesses in front that are right when the draft guesses behind token i of n,

    D(n) = 0,  D(i) = min over k <= min(r_i, n - 1 - i) of cost(i, k + 1) + D(i + 1 + k)

a shortest path over positions. (A wrong guess only adds to the cost, which grows with the rows.) No
policy that looks only back can be below it with the same draft. Under one scale plan the tokens do
not depend on the blocks, and drafts learn from tokens alone, so r_i is the same however the run
came to i.
"""

import tree_lm
from policy_lm import MOST
from tree_lm import chains


def play(tokens, n, next_block, cost):
    """tree_lm.play for chains: next_block as of fast_lm.decode; cost(c, m): cycles of a block."""
    return tree_lm.play(tokens, n, chains(next_block), lambda c, parents: cost(c, len(parents)))


def right_guesses(tokens, n, ahead):
    """[r_0, .., r_(n-1)]: right guesses in front, at each position; `ahead` as in policy_lm."""
    right = []
    for i in range(n):
        guesses, _ = ahead(tokens[:i + 1], min(MOST, n - 1 - i))
        count = 0
        while count < len(guesses) and guesses[count][0] == tokens[i + 1 + count]:
            count += 1
        right.append(count)
    return right


def hindsight(n, right, cost):
    """(cycles, [k of each block]) of the cheapest way to n tokens; right: as of right_guesses."""
    best = [(0, [])]                            # from position i on, i = n, n - 1, ..
    for i in reversed(range(n)):
        best.append(min((cost(i, k + 1) + best[n - i - 1 - k][0], [k] + best[n - i - 1 - k][1])
                        for k in range(min(right[i], n - 1 - i) + 1)))
    return best[n]
