"""Speculative decoding: a cheap draft guesses, the target checks all guesses in one pass.

A block is the last token and k guesses, m = k + 1 rows. The target computes all rows in one
program: row i sees the c cached rows and the block's rows 0 .. i, so its choice is what a single
step at that position would choose. With a guesses agreeing in front,

    guesses 0 .. a-1 are kept, the target's choice after row a comes free: a + 1 new tokens;
    cache rows 0 .. a of the block are kept, the rest is dropped.

Every token is the target's own choice after tokens that were its own: a bad draft costs time, never
a token. (Greedy decoding only, and exact as far as a row's numbers do not depend on the block
around it: in floating point they do not; in int8 the scales decide.)
"""

import math
import random

import capra
from capra_graph import is_number, mv, softmax_row, transpose
from capra_scales import largest
from ga2_isa import cycle_counts
from tiny_lm import (D, V, append_to_cache, argmax, check_context, check_count, check_matrix,
                     check_model, check_starts, check_token, f_next, feed_forward, float_generate,
                     outputs, project, step_inputs)

DRAFT_RUN = 24                                  # tokens from every start that fit a bigram draft


# ---- the verifier's and the draft's graph --------------------------------------------------------

def build_verify(m, c, mdl):
    """The target on a block of m rows behind c cached rows.

    Inputs x (m x D) and, for c > 0, kc and vc (c x D); outputs attn (m x D), tok (m x 1), logits
    (m x V), k_new, v_new (m x D). The causal rule is made of views: row i's keys and values are
    the first c + i + 1 rows.
    """
    check_context(c + m)
    g = capra.Graph()
    W, x, q, k_new, v_new = project(g, mdl, m)
    keys, values = append_to_cache(g, c, k_new, v_new)
    rows = None
    for i in range(m):
        seen = c + i + 1
        query = g.slice_rows(q, i, 1)
        scores = g.matmul(query, g.slice_rows(keys, 0, seen), transpose_b=True,
                          scale=1 / math.sqrt(D))
        row = g.tag(g.matmul(g.softmax(scores), g.slice_rows(values, 0, seen)), "attn")
        rows = row if rows is None else g.tag(g.concat_rows(rows, row), "attn")
    g.output(rows, "attn")
    outputs(g, feed_forward(g, W, x, rows), k_new, v_new)
    return g


def build_draft(Wd):
    """The bigram draft: x (1 x D) times Wd (D x V); outputs tok, logits."""
    g = capra.Graph()
    logits = g.matmul(g.input("x", (1, D)), g.weight("Wd", Wd))
    g.output(g.argmax(logits), "tok")
    g.output(logits, "logits")
    return g


# ---- the target in floating point, a block at a time ---------------------------------------------

def float_block(mdl, toks, kc, vc, aux=None):
    """(logits, k, v), a row per token of `toks`: the block as one masked computation.

    kc and vc (c rows of D) are not changed. Row i may see column j of the scores where j <= c + i;
    the mask says so outright, so that this is a second opinion on float_step and on the verifier's
    slices. `aux`, a dict, receives "attn": the attention rows (m x D).
    """
    c = len(kc)
    x = [mdl["E"][token] for token in toks]
    q, k, v = (product(x, mdl[name]) for name in ("Wq", "Wk", "Wv"))
    keys, values = kc + k, vc + v
    scores = product(q, transpose(keys))
    masked = [[score / math.sqrt(D) if j <= c + i else -math.inf for j, score in enumerate(row)]
              for i, row in enumerate(scores)]
    attn = product([softmax_row(row) for row in masked], values)
    h = plus(x, product(attn, mdl["Wo"]))
    hidden = [[max(0.0, value) for value in row] for row in product(h, mdl["W1"])]
    y = plus(h, product(hidden, mdl["W2"]))
    if aux is not None:
        aux["attn"] = attn
    return product(y, mdl["Wout"]), k, v


def product(A, B):
    """The matrix product of A (m x n) and B (n x p)."""
    return [mv(row, B) for row in A]


def plus(A, B):
    """The sum of two matrices of one shape."""
    return [[p + q for p, q in zip(*rows)] for rows in zip(A, B)]


def float_verify(mdl):
    """A verify for `speculate` made of float_block."""
    def verify(c, toks, kc, vc):
        logits, k, v = float_block(mdl, toks, kc, vc)
        return [argmax(row) for row in logits], k, v
    return verify


# ---- the draft: a bigram table behind the embedding ----------------------------------------------

def solve(A, B):
    """X (n x p) with A X = B, for A (n x n), B (n x p): Gauss-Jordan with partial pivoting.

    Raises ValueError where A is singular.
    """
    n = len(A)
    rows = [list(left) + list(right) for left, right in zip(A, B)]
    for j in range(n):
        pivot = max(range(j, n), key=lambda i: abs(rows[i][j]))
        if abs(rows[pivot][j]) < 1e-12:
            raise ValueError(f"solve: the matrix is singular (no pivot in column {j})")
        rows[j], rows[pivot] = rows[pivot], rows[j]
        rows[j] = [value / rows[j][j] for value in rows[j]]
        for i in range(n):
            if i != j:
                factor = rows[i][j]
                rows[i] = [value - factor * top for value, top in zip(rows[i], rows[j])]
    return [row[n:] for row in rows]


def make_draft(mdl, noise, seed=0):
    """Wd (D x V) with E Wd = L, L[t][j] the draft's logit for token j after token t.

    L knows the structured model's rule, or counts the pairs of a random model's own runs; every
    entry then gets normal noise of size `noise`. Raises ValueError for a noise that is negative or
    not finite, and for what is not a model.
    """
    check_model(mdl)
    if not (is_number(noise) and noise >= 0):
        raise ValueError(f"noise = {noise!r} must be a finite number, 0 or more")
    L = rule_table() if mdl["kind"] == "structured" else bigram_table(mdl)
    R = random.Random(seed)
    return solve(mdl["E"], [[logit + R.gauss(0, noise) for logit in row] for row in L])


def rule_table():
    """8 at the structured model's next token, else 0."""
    return [[8.0 if j == f_next(t) else 0.0 for j in range(V)] for t in range(V)]


def bigram_table(mdl):
    """4 ln(V p(j | t)) from the pairs of floating-point runs from every start, counts from 0.5."""
    count = [[0.5] * V for _ in range(V)]
    for start in range(V):
        run = float_generate(mdl, start, DRAFT_RUN)
        for t, j in zip(run, run[1:]):
            count[t][j] += 1
    table = []
    for row in count:
        total = math.fsum(row)
        table.append([4 * math.log(V * number / total) for number in row])
    return table


def draft_next(mdl, Wd, tok):
    """The draft's guess after `tok`, in floating point."""
    return argmax(mv(mdl["E"][tok], Wd))


# ---- the host loop -------------------------------------------------------------------------------

def speculate(mdl, Wd, start, n, k, verify, draft=None):
    """(tokens, stats, calls): n tokens after `start`, k guesses a block.

    verify(c, toks, kc, vc) -> (choice per row, k rows, v rows); draft(tok) -> token, by default the
    floating-point draft of `mdl` and `Wd`. The last block may bring more than was asked for; tokens
    is cut to [start, n more]. stats, before the cut: blocks, proposed, accepted, emitted, cache
    (rows kept). calls: ("draft",) and ("verify", c, m) in order.
    Raises ValueError for n or k below 0 and for a token outside the vocabulary.
    """
    check_count("n", n)
    check_count("k", k)
    check_token("start", start)
    draft = draft or (lambda tok: draft_next(mdl, Wd, tok))
    tokens = [start]
    kc, vc = [], []
    stats = new_stats()
    calls = []
    while len(tokens) <= n:
        calls += [("draft",)] * k + [("verify", len(kc), k + 1)]
        guesses, accepted, new, k_rows, v_rows = one_block(tokens[-1], k, kc, vc, verify, draft)
        tokens = tokens + new
        kc, vc = kc + k_rows, vc + v_rows
        count_block(stats, len(guesses), accepted, len(new), len(kc))
    return tokens[:n + 1], stats, calls


def one_block(last, k, kc, vc, verify, draft):
    """One block behind the cache: (guesses, accepted, new, k_rows, v_rows).

    `last` is the last token; `accepted` counts the agreeing guesses in front, `new` lists the
    tokens that come out, k_rows and v_rows the rows that the cache keeps.
    """
    block = [last]
    for _ in range(k):
        block.append(check_token("the draft's guess", draft(block[-1])))
    guesses = block[1:]
    choice, k_rows, v_rows = checked(verify(len(kc), block, kc, vc), len(block))
    accepted = agreeing(guesses, choice)
    new = guesses[:accepted] + [choice[accepted]]
    kept = accepted + 1                         # rows 0 .. a: the last token's, then the guesses'
    return guesses, accepted, new, k_rows[:kept], v_rows[:kept]


def agreeing(guesses, choice):
    """How many guesses in front are what the target chose."""
    accepted = 0
    while accepted < len(guesses) and guesses[accepted] == choice[accepted]:
        accepted += 1
    return accepted


def checked(answer, m):
    """A verify's answer for m rows; ValueError where it has not a choice, k and v row for each."""
    sizes = [len(part) for part in answer]
    if sizes != [m, m, m]:
        raise ValueError(f"verify gave {sizes} choices, k rows and v rows for {m} rows; it must "
                         "give one of each a row")
    for token in answer[0]:
        check_token("verify's choice", token)
    return answer


def new_stats():
    """The statistics of a run before its first block."""
    return {"blocks": 0, "proposed": 0, "accepted": 0, "emitted": 0, "cache": 0}


def count_block(stats, proposed, accepted, emitted, cache):
    """Add a block to the statistics; `cache` is how many rows the cache now has."""
    stats["blocks"] += 1
    stats["proposed"] += proposed
    stats["accepted"] += accepted
    stats["emitted"] += emitted
    stats["cache"] = cache


# ---- on the chip ---------------------------------------------------------------------------------

class SpecChip:
    """The host loop on the chip: a verifier program per (c, m), one draft program.

    Calibrated by the floating-point loop with the floating-point draft, n tokens from every start
    in `starts`. `m` is the model; calib: {(c, m): verifier inputs seen}; ranges: x, k, v over all
    rows seen; dcalib: the inputs that the draft was fed; vprogs: {(c, m): program}, dprog: the
    draft's program; log: what the last run executed.
    """

    def __init__(self, mdl, Wd, n, k, starts=range(V)):
        self.m = mdl
        self.Wd = Wd
        self.k = k
        self.starts = starts
        self.calib, self.ranges, self.dcalib = calibrate_blocks(mdl, Wd, n, k, starts)
        self.dprog = compile_draft(mdl, Wd, self.dcalib)
        self.vprogs = {}
        self.log = []

    def _vprog(self, c, mm):
        """The verifier program for mm rows behind c cached ones, compiled once.

        A shape that no calibration run met is calibrated on plain runs of its length; the program's
        notes say so.
        """
        if (c, mm) not in self.vprogs:
            samples = self.calib.get((c, mm)) or plain_blocks(self.m, c, mm, self.starts)
            P = capra.compile_graph(build_verify(mm, c, self.m), samples, ranges=self.ranges)
            if (c, mm) not in self.calib:
                P.notes.append(f"no calibration run met {mm} rows behind {c} cached ones: "
                               f"calibrated on plain runs of {c + mm} tokens from "
                               f"{len(self.starts)} starts")
            self.vprogs[c, mm] = P
        return self.vprogs[c, mm]

    def verify(self, c, toks, kc, vc):
        """(choice per row, k rows, v rows) from the chip, as `speculate` wants them."""
        P = self._vprog(c, len(toks))
        ext = capra.ext_image(P, step_inputs([self.m["E"][token] for token in toks], kc, vc))
        self.log.append({"kind": "verify", "code": P.code, "ext": ext, "c": c, "m": len(toks)})
        out = capra.run_image(P, ext)
        return [row[0] for row in out["tok"][0]], out["k_new"][1], out["v_new"][1]

    def draft(self, tok):
        """The draft's guess after `tok`, from the chip."""
        ext = capra.ext_image(self.dprog, {"x": [self.m["E"][tok]]})
        self.log.append({"kind": "draft", "code": self.dprog.code, "ext": ext})
        return capra.run_image(self.dprog, ext)["tok"][0][0][0]

    def generate(self, start, n):
        """(tokens, stats, log): as `speculate`; a log entry has kind, code, ext (and c, m)."""
        self.log = []
        tokens, stats, _ = speculate(self.m, self.Wd, start, n, self.k, self.verify, self.draft)
        return tokens, stats, self.log


def calibrate_blocks(mdl, Wd, n, k, starts):
    """(calib, ranges, dcalib) from floating-point host loops of n tokens from every start.

    calib: {(c, m): verifier inputs}; ranges: {"x", "k", "v"}; dcalib: an input for each token that
    the draft was fed.
    """
    check_model(mdl)
    check_draft(Wd)
    check_starts(starts)
    target = float_verify(mdl)
    calib = {}
    ranges = {"x": largest(mdl["E"]), "k": 0.0, "v": 0.0}
    drafted = set()

    def verify(c, toks, kc, vc):
        x = [mdl["E"][token] for token in toks]
        calib.setdefault((c, len(toks)), []).append(step_inputs(x, kc, vc))
        choice, k_rows, v_rows = target(c, toks, kc, vc)
        ranges["k"] = max(ranges["k"], largest(k_rows))
        ranges["v"] = max(ranges["v"], largest(v_rows))
        return choice, k_rows, v_rows

    def draft(tok):
        drafted.add(tok)
        return draft_next(mdl, Wd, tok)

    for start in starts:
        speculate(mdl, Wd, start, n, k, verify, draft)
    return calib, ranges, [{"x": [mdl["E"][token]]} for token in sorted(drafted)]


def compile_draft(mdl, Wd, samples=()):
    """The draft's program, calibrated on input `samples`; on the whole vocabulary without any."""
    check_draft(Wd)
    return capra.compile_graph(build_draft(Wd), samples or [{"x": [row]} for row in mdl["E"]])


def check_draft(Wd):
    """Raise ValueError unless Wd is D x V of finite numbers."""
    check_matrix("matrix Wd of the draft", Wd, D, V)


def plain_blocks(mdl, c, m, starts):
    """Verifier inputs for m rows behind c cached ones, from plain runs: one per start."""
    samples = []
    for start in starts:
        run = float_generate(mdl, start, c + m - 1)
        _, k, v = float_block(mdl, run, [], [])
        samples.append(step_inputs([mdl["E"][token] for token in run[c:]], k[:c], v[:c]))
    return samples


def cycles_of(log):
    """The chip's cycles for all programs of a log."""
    return sum(cycle_counts(entry["code"])[0] for entry in log)
