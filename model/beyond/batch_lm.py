"""A batch: one pass over the weights for several sequences, and each answer the same as alone.

    rows of the pass     sequence 0's block, then sequence 1's, ..; in full tiles of four
    projections          all rows at once; then each sequence by itself:
    keys, values         its rows of the product, requantized to where its cache ends (part_rows)
    attention            its queries over its own keys and values, as in fast_lm.build_batched
    feed-forward         all rows at once

Each sequence has its own cache, its own block and its own end. Its keys are in the scratchpad only
until its scores are made, its values only until its attention is: what lies there at one time is
one sequence's cache, and the rows of all.

Why the company changes nothing: a row of a product depends on its own row of x and on the weights,
attention reads one sequence's buffers, and all programs have one scale plan. So each row has the
integers of its own plain step (exact_lm has the reasons, batch_proof proves it by machine).
Engines lose this where the kernel, and with it the order of a floating-point sum, is chosen by the
size of the batch, or where the bookkeeping mixes sequences of different lengths.

c cached rows, m = k + 1 rows of a block, D columns, as in spec_lm.
"""

import math
from dataclasses import dataclass, field

import capra
from fast_lm import FastChip, guess_block
from ga2_isa import K_MAX
from policy_lm import clipped
from spec_lm import count_block, new_stats, one_block
from tiny_lm import D, V, check_context, check_count, check_token, feed_forward, project


# ---- the program ---------------------------------------------------------------------------------

def build_batch(shapes, mdl):
    """The target on a block of each sequence; shapes: (c, m) of each, m rows behind c cached ones.

    Inputs x (all rows x D) and, for sequence s with c > 0, "kc s" and "vc s" (c x D). Outputs tok
    (all rows x 1), logits (all rows x V) and, for each s, "k_new s" and "v_new s" (m x D).
    """
    g = capra.Graph()
    W, x, q, k_new, v_new = project(g, mdl, sum(m for _, m in shapes))
    attn = None
    row = 0
    for s, (c, m) in enumerate(shapes):
        check_context(c + m)
        keys = behind_cache(g, "k", s, c, g.part_rows(k_new, row, m))
        scores = g.matmul(g.slice_rows(q, row, m), keys, transpose_b=True, scale=1 / math.sqrt(D))
        weights = g.causal_softmax(scores, c + 1)
        values = behind_cache(g, "v", s, c, g.part_rows(v_new, row, m))
        own = g.tag(g.matmul(weights, values), "attn")
        attn = own if attn is None else g.tag(g.concat_rows(attn, own), "attn")
        row += m
    logits = feed_forward(g, W, x, attn)
    g.output(g.argmax(logits), "tok")
    g.output(logits, "logits")
    return g


def behind_cache(g, tag, s, c, new):
    """The node of sequence s's keys (tag k) or values (v): its new rows behind c cached ones."""
    g.output(g.tag(new, tag), f"{tag}_new {s}")
    if not c:
        return new
    return g.tag(g.concat_rows(g.tag(g.input(f"{tag}c {s}", (c, D)), tag), new), tag)


def batch_inputs(mdl, blocks):
    """The program's inputs for blocks [(tokens, kc, vc)]."""
    inputs = {"x": [mdl["E"][token] for tokens, _, _ in blocks for token in tokens]}
    for s, (_, kc, vc) in enumerate(blocks):
        if kc:
            inputs[f"kc {s}"], inputs[f"vc {s}"] = kc, vc
    return inputs


def batch_answers(outputs, sizes):
    """[(choices, k rows, v rows, logits)] of each sequence, whose blocks have `sizes` rows."""
    answers = []
    row = 0
    for s, m in enumerate(sizes):
        choices = [index for index, in outputs["tok"][0][row:row + m]]
        answers.append((choices, outputs[f"k_new {s}"][1], outputs[f"v_new {s}"][1],
                        outputs["logits"][1][row:row + m]))
        row += m
    return answers


# ---- the host loop -------------------------------------------------------------------------------

@dataclass
class Sequence:
    """A request on its way."""

    request: int                                # its place among the requests
    n: int                                      # tokens it wants after the first
    guesses: object                             # policy(wanted, chances, later), as in policy_lm
    tokens: list
    kc: list = field(default_factory=list)      # cached rows
    vc: list = field(default_factory=list)
    stats: dict = field(default_factory=new_stats)

    def wanted(self):
        return self.n + 1 - len(self.tokens)


def serve(sequences, slots, verify, draft_after):
    """Finish all `sequences`, at most `slots` of them in a pass, first come, first served.

    verify(running, blocks) -> (choices, k rows, v rows) for each; draft_after(tokens) -> the draft
    behind them. A sequence that is done leaves before the next pass, and one that waits gets its
    slot.
    """
    waiting = [one for one in sequences if one.wanted() > 0]
    running = []
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(waiting.pop(0))
        one_pass(running, verify, draft_after)
        running = [one for one in running if one.wanted() > 0]


def one_pass(running, verify, draft_after):
    """One block of each sequence in `running`, verified together.

    The rule of what is kept is one_block's; its guesses and its answer are there already.
    """
    blocks = [guess_block(one.tokens[-1], one.guesses(one.wanted(), (), 0),
                          draft_after(one.tokens)) for one in running]
    for one, block, answer in zip(running, blocks, verify(running, blocks)):
        guesses = iter(block[1:])
        _, accepted, new, k_rows, v_rows = one_block(
            block[0], len(block) - 1, one.kc, one.vc, lambda *_: answer, lambda _: next(guesses))
        one.tokens = one.tokens + new
        one.kc, one.vc = one.kc + k_rows, one.vc + v_rows
        count_block(one.stats, len(block) - 1, accepted, len(new), len(one.kc))


# ---- the chip ------------------------------------------------------------------------------------

class BatchChip(FastChip):
    """The host loop for several requests, under one scale plan.

    At most `slots` sequences share a pass. The other arguments are ExactChip's; the draft answers
    from its table, and a block guesses no further than its request still wants.
    """

    def __init__(self, mdl, Wd, n, k, slots, starts=range(V), share=None):
        super().__init__(mdl, Wd, n, k, starts, share)
        check_count("slots", slots)
        if slots == 0:
            raise ValueError("slots = 0: a pass needs room for at least one sequence")
        self.slots = slots

    def generate(self, requests):
        """(tokens, stats, log) for requests [(start, n), ..]: n tokens after each start.

        tokens and stats: a list and a dict for each request, as FastChip.generate's for it alone.
        log: the draft's table, then an entry for each pass: kind, code, ext, shapes, requests
        (which ones) and logits (a list of rows for each).
        Raises ValueError or CompileError, before any work, where a request asks for what is no
        token or for more than the chip's limit, and CompileError for a pass that does not fit.
        """
        sequences = [self.sequence(i, request) for i, request in enumerate(requests)]
        self.log = []
        serve(sequences, self.slots, self.batch, self.drafts())
        return ([one.tokens[:one.n + 1] for one in sequences], [one.stats for one in sequences],
                self.log)

    def policy(self, n):
        """The policy of a request for n tokens."""
        return clipped(self.k)

    def sequence(self, i, request):
        """Request i as a Sequence, checked."""
        if not (isinstance(request, (tuple, list)) and len(request) == 2):
            raise ValueError(f"request {i} is {request!r}; a request is (start, n)")
        start, n = request
        check_token(f"request {i}: start", start)
        check_count(f"request {i}: n", n)
        try:
            check_context(min(n, K_MAX + 1))
        except capra.CompileError as error:
            raise capra.CompileError(f"request {i}: {error}") from None
        return Sequence(i, n, self.policy(n), [start])

    def batch(self, running, blocks):
        """[(choices, k rows, v rows)] of the sequences' blocks, from one program on the chip."""
        shapes = tuple((len(one.kc), len(block)) for one, block in zip(running, blocks))
        P = self.batch_program(shapes, [one.request for one in running])
        inputs = batch_inputs(self.m, [(block, one.kc, one.vc)
                                       for one, block in zip(running, blocks)])
        ext = capra.ext_image(P, inputs)
        answers = batch_answers(capra.run_image(P, ext), [len(block) for block in blocks])
        self.log.append({"kind": "batch", "code": P.code, "ext": ext, "shapes": shapes,
                         "requests": [one.request for one in running],
                         "logits": [logits for *_, logits in answers]})
        return [answer for *answer, _ in answers]

    def batch_program(self, shapes, names=None):
        """The program for blocks of `shapes`, ((c, m), ..), in this order, compiled once.

        Raises CompileError, naming the first sequence that does not fit beside those before it, by
        its entry of `names` or else its place.
        """
        try:
            return self.plan.program(build_batch, shapes)
        except capra.CompileError as error:
            if len(shapes) > 1:
                self.batch_program(shapes[:-1], names)
            last = len(shapes) - 1
            c, m = shapes[last]
            company = f"beside the {last} before it" if last else "alone"
            raise capra.CompileError(
                f"sequence {names[last] if names else last} ({m} rows behind {c}) does not fit "
                f"{company}: {error}; use fewer slots or guesses") from None
