"""What the next block guesses: one interface for fixed, clipped and planned k, and for trees.

    policy(wanted, chances, later) -> k     wanted: tokens to go; chances: of the draft's guesses to
                                            be right, in order; later: of guesses in later blocks
    ahead(tokens, most) -> (guesses, later) a draft on the host: up to `most` pairs (guess, chance)
                                            behind the tokens so far; it learns from them
    next_block(tokens) -> (k, draft)        both for a run (follow), as fast_lm.decode wants them
    next_tree(tokens) -> (parents, guesses) the widest form, as tree_lm.decode wants it: a plan of
                                            trees (tree_plan.Planner), or any next_block above by
                                            tree_lm.chains

The planned k has the fewest expected cycles to the end. With w tokens to go of n (c = n - w cached
rows), the guesses' chances p_0, p_1, .. and a block of m rows at cost(c, m) cycles:

    E(w, k) = cost(n - w, k + 1) + sum over i < k of P(i) * (1 - p_i) * T(w - 1 - i)
              + P(k) * T(w - 1 - k)
    P(i) = p_0 * .. * p_(i - 1)             the first i guesses are right
    T(0) = 0, T(w) = min over k of E(w, k), every p_i being `later`

The row tiles of 4 are in the costs and the end of the run is in w: both shape the choice. T takes
n * MOST sums a block; `price` asks for four programs for each m, 64 in all: under a second for 64
tokens. Knowing the chances of later guesses one by one would need a state for each history.

What a draft learns costs nothing: each token that the target says judges the guess the draft would
have made there, in whatever block it came. So a k of 0 teaches as much as a k of 15.
"""

from ga2_isa import TILE

MOST = 15                                       # guesses in a block: four full row tiles
TRUST = 0.8                                     # of a draft nothing is known of, worth
TRUST_SEEN = 3                                  # so many judged guesses
HERE_SEEN = 2                                   # judged guesses that the draft's trust counts for


# ---- policies ------------------------------------------------------------------------------------

def fixed(k):
    """k guesses, always."""
    return lambda wanted, chances, later: k


def clipped(k):
    """As `fixed`, but no more than are wanted: the target adds one token to the guesses."""
    return lambda wanted, chances, later: min(k, wanted - 1)


def planned(n, cost):
    """The k with the fewest expected cycles, for runs of n tokens; the smallest of equals.

    cost(c, m): cycles of a block of m rows behind c cached ones.
    """
    def policy(wanted, chances, later):
        to_go = [0.0]
        for w in range(1, wanted):
            same = [later] * min(MOST, w - 1)
            to_go.append(min(options(n - w, same, cost, to_go))[0])
        return min(options(n - wanted, chances[:wanted - 1], cost, to_go))[1]

    return policy


def options(c, chances, cost, to_go):
    """(expected cycles, k) for k = 0 .. len(chances) guesses behind c cached rows.

    to_go: [expected cycles for w more tokens], as far as a block here may leave: its last entry is
    for one token less than are wanted now.
    """
    refused = 0.0                               # the sum over i < k
    right = 1.0                                 # P(k)
    left = len(to_go) - 1                       # tokens to go behind this block: w - 1 - k
    for k, chance in enumerate([*chances, 0.0]):
        yield cost(c, k + 1) + refused + right * to_go[left - k], k
        refused += right * (1 - chance) * to_go[left - k]
        right *= chance


def follow(n, policy, ahead):
    """next_block(tokens) of fast_lm.decode, for a run of n tokens and a draft on the host.

    No more guesses are made than the draft has.
    """
    def next_block(tokens):
        wanted = n + 1 - len(tokens)
        guesses, later = ahead(tokens, min(MOST, wanted - 1))
        chances = [chance for _, chance in guesses]
        answers = iter(guesses)
        return min(policy(wanted, chances, later), len(guesses)), lambda tok: next(answers)[0]

    return next_block


# ---- what a block costs --------------------------------------------------------------------------

def prices(cost):
    """price(c, m) = cost(c, m) for the batched verifier, from four programs for each m.

    Behind a cached row or more, each further row costs the same, and a second amount is added where
    c + m opens a column tile: the products of the attention are cut into tiles of TILE columns.
    Shapes the scratchpad has no room for get the price they would have.
    """
    known = {}

    def parts(m):
        first = 2 if (1 + m) % TILE == 0 else 1         # the row behind it opens no tile
        base = cost(first, m)
        row = cost(first + 1, m) - base
        tile = cost(first + TILE, m) - base - TILE * row
        return cost(0, m), base - first * row - tiles(first + m) * tile, row, tile

    def price(c, m):
        if m not in known:
            known[m] = parts(m)
        empty, base, row, tile = known[m]
        return empty if c == 0 else base + c * row + tiles(c + m) * tile

    return price


def tiles(columns):
    """Column tiles of a product."""
    return -(-columns // TILE)


# ---- trust ---------------------------------------------------------------------------------------

def trusted(guess, span):
    """ahead(tokens, most) for a draft that states no chances; new for each run.

    guess(tokens) -> the next token, or None where it has no guess. Its trust is the share of right
    guesses among those that the run has judged, counted from TRUST * TRUST_SEEN of TRUST_SEEN. The
    chance of a guess is the share among those made behind the same last `span` tokens, the draft's
    trust counting for HERE_SEEN more.
    """
    known = 1                                   # tokens that have been judged: the start has not
    counts = {}                                 # {last tokens: [judged, right]}; (): all

    def chance(key, start, seen):
        judged, right = counts.get(key, (0, 0))
        return (right + start * seen) / (judged + seen)

    def ahead(tokens, most):
        nonlocal known
        for i in range(known, len(tokens)):
            answer = guess(tokens[:i])
            if answer is not None:
                for key in ((), tuple(tokens[:i][-span:])):
                    count = counts.setdefault(key, [0, 0])
                    count[0] += 1
                    count[1] += answer == tokens[i]
        known = len(tokens)
        trust = chance((), TRUST, TRUST_SEEN)
        guesses = []
        tokens = list(tokens)
        while len(guesses) < most:
            answer = guess(tokens)
            if answer is None:
                break
            guesses.append((answer, chance(tuple(tokens[-span:]), trust, HERE_SEEN)))
            tokens.append(answer)
        return guesses, trust

    return ahead
