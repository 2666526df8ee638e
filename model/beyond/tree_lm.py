"""Trees of guesses: a block tries several continuations, and the target checks them all at once.

Row 0 is the last token; each other row is a guess after an earlier row, its parent. A row sees the
cache, its ancestors and itself. Its position is its depth, not its number: two guesses after one
token stand at one position. A chain of guesses is the tree in which each row's parent is the row
before it; the chapter's two alternatives for the first guess are two rows with the parent 0.

    S = Q K^T       m x (c + m)
    P = masked_softmax(S, seen): row i is a softmax over the cache and its ancestors, else exactly 0
    attn = P V      m x D

From row 0 the target's choice names the child to go on with, as long as there is such a child. So
one path is accepted; it brings its guesses and the choice behind the last of them. The cache keeps
the rows of that path and no others, in its order: they may lie anywhere in the block.

Why the tokens are still the plain ones, bit for bit: behind its cache row i has the integers of
the plain step at the end of its path. Its scores are those of the rows on the path, in that order,
side by side for the softmax as for the plain step's; every other row has the weight 0, and a zero
adds nothing to a sum. exact_lm says the rest, and tree_proof proves it for all inputs.

c cached rows, m rows of the block, n tokens wanted, V tokens, D columns, as in spec_lm.
"""

import math

import capra
import spec_lm
import tree_plan
from capra_graph import is_integer, softmax_row
from exact_lm import ExactChip
from fast_lm import guess_block
from ga2_isa import K_MAX, cycle_counts
from spec_lm import count_block, new_stats
from tiny_lm import (D, V, append_to_cache, check_context, check_count, check_token, feed_forward,
                     float_generate, outputs, project, step_inputs)

TEMPERATURES = (0.5, 1, 2, 4, 8, 16)            # of a draft's chances; the likeliest is taken


# ---- the program ---------------------------------------------------------------------------------

def build_tree(parents, c, mdl):
    """The target on a tree of m = len(parents) rows behind c cached rows.

    parents: each row's parent, an earlier row; None for row 0. Inputs and outputs as those of
    fast_lm.build_batched, which a chain gives exactly.
    Raises ValueError for what is not a tree, CompileError where its attention would be too wide.
    """
    check_parents(parents)
    m = len(parents)
    if c + m > K_MAX:
        raise capra.CompileError(f"a tree of {m} rows behind {c}: its attention would sum over "
                                 f"{c + m} rows of values; the chip multiplies at most {K_MAX} "
                                 f"(give it at most {max(K_MAX - c, 0)} rows)")
    g = capra.Graph()
    W, x, q, k_new, v_new = project(g, mdl, m)
    keys, values = append_to_cache(g, c, k_new, v_new)
    scores = g.matmul(q, keys, transpose_b=True, scale=1 / math.sqrt(D))
    seen = [list(range(c)) + [c + row for row in path] for path in paths(parents)]
    attn = g.tag(g.matmul(g.masked_softmax(scores, seen), values), "attn")
    outputs(g, feed_forward(g, W, x, attn), k_new, v_new)
    return g


def check_parents(parents):
    """Raise ValueError, naming the row, where `parents` is not a tree in order."""
    if not parents or parents[0] is not None:
        raise ValueError(f"parents = {parents!r:.60}: row 0 is the last token, the root; its "
                         "parent must be None")
    for row, parent in enumerate(parents[1:], 1):
        if parent is None:
            raise ValueError(f"row {row} of the tree has no parent; row 0 alone is a root")
        if not (is_integer(parent) and 0 <= parent < row):
            raise ValueError(f"row {row} of the tree has the parent {parent!r}; it must be an "
                             f"earlier row, 0 to {row - 1}")


def paths(parents):
    """[the rows from the root to each row, both included]."""
    found = []
    for row, parent in enumerate(parents):
        found.append(([] if parent is None else found[parent]) + [row])
    return found


# ---- a block on the host -------------------------------------------------------------------------

def check_block(parents, toks):
    """Raise ValueError where `toks` is not a token for each row, or two alternatives are one."""
    check_parents(parents)
    if len(toks) != len(parents):
        raise ValueError(f"the tree has {len(parents)} rows and {len(toks)} tokens; give one a row")
    first = {}
    for row, (parent, token) in enumerate(zip(parents, toks)):
        check_token(f"row {row} of the tree:", token)
        if first.setdefault((parent, token), row) != row:
            raise ValueError(f"rows {first[parent, token]} and {row} of the tree are both the "
                             f"token {token} after row {parent}; give different alternatives")


def accepted_path(parents, toks, choice):
    """The rows that the target's choices lead through, from the root on."""
    path = [0]
    while True:
        agreeing = [row for row, parent in enumerate(parents)
                    if parent == path[-1] and toks[row] == choice[path[-1]]]
        if not agreeing:
            return path
        path += agreeing


def decode(start, n, verify, next_tree):
    """(tokens, stats) as spec_lm.speculate, the blocks being trees.

    next_tree(tokens) -> (parents, guesses), a guess for each row but the first (see policy_lm);
    verify(c, parents, toks, kc, vc) -> (choice per row, k rows, v rows). The cache holds, in order,
    the rows of the tokens up to the last but one, whatever rows of their blocks they were.
    """
    check_token("start", start)
    check_count("n", n)
    tokens = [start]
    kc, vc = [], []
    stats = new_stats()
    while len(tokens) <= n:
        parents, guesses = next_tree(tokens)
        toks = tokens[-1:] + guesses
        check_block(parents, toks)
        answer = verify(len(kc), parents, toks, kc, vc)
        choice, k_rows, v_rows = spec_lm.checked(answer, len(toks))
        path = accepted_path(parents, toks, choice)
        new = [toks[row] for row in path[1:]] + [choice[path[-1]]]
        tokens = tokens + new
        kc = kc + [k_rows[row] for row in path]
        vc = vc + [v_rows[row] for row in path]
        count_block(stats, len(guesses), len(path) - 1, len(new), len(kc))
    return tokens[:n + 1], stats


def chains(next_block):
    """next_tree, for `decode`, of a next_block of fast_lm.decode: its blocks are chains."""
    def next_tree(tokens):
        guesses = guess_block(tokens[-1], *next_block(tokens))[1:]
        return chain(len(guesses) + 1), guesses

    return next_tree


def chain(m):
    """The parents of a chain of m rows."""
    return (None, *range(m - 1))


# ---- the chip ------------------------------------------------------------------------------------

class TreeChip(ExactChip):
    """The host loop on the chip with one scale plan; each block is the cheapest tree (tree_plan).

    Arguments as ExactChip's; rows: the most that a block may have. The draft answers for all tokens
    in one program at the start of a run; its logits, with a temperature fitted on runs from other
    starts, are the chances of the guesses.
    """

    def __init__(self, mdl, Wd, n, rows, starts=range(V), share=None):
        if not (is_integer(rows) and rows >= 1):
            raise ValueError(f"rows = {rows!r} must be an integer, 1 or more")
        super().__init__(mdl, Wd, n, rows - 1, starts, share)
        self.rows = rows
        self.runs = {start: float_generate(mdl, start, max(n, 1)) for start in starts}
        self.costs = tree_plan.Costs(self.chain_cost)

    def program(self, c, parents):
        """The program of a tree behind c cached rows, compiled once.

        Raises CompileError naming the tree where the chip has no room for it.
        """
        try:
            return self.plan.program(build_tree, tuple(parents), c)
        except capra.CompileError as error:
            where = f"a tree of {len(parents)} rows behind {c}: "
            words = str(error)
            if not words.startswith(where):
                words = f"{where}{error} (give it fewer rows)"
            raise capra.CompileError(words) from None

    def cost(self, c, parents):
        """Cycles of the verifier of a tree behind c cached rows."""
        return cycle_counts(self.program(c, parents).code)[0]

    def chain_cost(self, c, m):
        """Cycles of the verifier of a chain of m rows; infinite where there is no room for it."""
        try:
            return self.cost(c, chain(m))
        except capra.CompileError:
            return math.inf

    def verify(self, c, parents, toks, kc, vc):
        """(choice per row, k rows, v rows) from the chip, as `decode` wants them."""
        P = self.program(c, parents)
        ext = capra.ext_image(P, step_inputs([self.m["E"][token] for token in toks], kc, vc))
        self.log.append({"kind": "verify", "code": P.code, "ext": ext, "c": c, "m": len(toks),
                         "parents": list(parents), "tokens": list(toks)})
        out = capra.run_image(P, ext)
        return [row[0] for row in out["tok"][0]], out["k_new"][1], out["v_new"][1]

    def generate(self, start, n):
        """(tokens, stats, log) as SpecChip.generate; the log starts with the draft's program.

        Raises CompileError, before any work, where n is past the chip's limit.
        """
        check_token("start", start)
        check_count("n", n)
        check_context(min(n, K_MAX + 1))
        self.log = []
        planner = tree_plan.Planner(n, self.rows, self.chances(start), self.costs)
        tokens, stats = decode(start, n, self.verify, planner)
        return tokens, stats, self.log

    def chances(self, start):
        """[[the draft's chance that token j comes after t, for each j], for each t].

        The softmax of its logits at the temperature under which the runs from other starts than
        `start` are likeliest; from all starts, where there is no other.
        """
        logits = self.draft_logits()
        others = [run for first, run in self.runs.items() if first != start]
        pairs = [pair for run in others or self.runs.values() for pair in zip(run, run[1:])]
        return max((chances_at(logits, temperature) for temperature in TEMPERATURES),
                   key=lambda table: math.fsum(math.log(max(table[t][j], 1e-300))
                                               for t, j in pairs))

    def draft_logits(self):
        """[[the draft's logits after each token]], V x V, from one program on the chip."""
        P = capra.compile_graph(build_draft_logits(self.Wd), [{"x": self.m["E"]}])
        ext = capra.ext_image(P, {"x": self.m["E"]})
        self.log.append({"kind": "table", "code": P.code, "ext": ext})
        return capra.run_image(P, ext)["logits"][1]


def build_draft_logits(Wd):
    """The bigram draft for all tokens: x (V x D) times Wd (D x V); output logits (V x V)."""
    g = capra.Graph()
    g.output(g.matmul(g.input("x", (V, D)), g.weight("Wd", Wd)), "logits")
    return g


def chances_at(logits, temperature):
    """The softmax of each row of logits / temperature."""
    return [softmax_row([logit / temperature for logit in row]) for row in logits]


# ---- without a chip ------------------------------------------------------------------------------

def play(tokens, n, next_tree, cost):
    """(stats, cycles of the verifier) of n tokens of a known target, blocks by `next_tree`.

    `tokens` are the target's from the start on, as far as the blocks reach; cost(c, parents). A row
    behind a wrong guess gets the choice at its position, which nobody looks at.
    """
    cycles = 0

    def verify(c, parents, toks, kc, vc):
        nonlocal cycles
        cycles += cost(c, parents)
        rows = [[] for _ in toks]
        return [tokens[c + len(path)] for path in paths(parents)], rows, rows

    _, stats = decode(tokens[0], n, verify, next_tree)
    return stats, cycles
