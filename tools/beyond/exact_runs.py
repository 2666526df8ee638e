"""The same runs under both schemes: the parts of ch16_exact that take time.

Scales per shape: tiny_lm.Chip and spec_lm.SpecChip, calibrated by the chapter. One plan: exact_lm.
A part of the study is all runs of `targets` by `pairs` (a draft and k) by `starts`, n tokens each.
"""

import capra
import exact_proof
import ga2_isa
import holed_lm
import spec_lm
import tiny_lm
from capra_run import read_outputs
from exact_lm import ExactChip
from runs import make_draft, make_target

PROOF_RUN = 24                                  # tokens of the runs behind a proved plan


# ---- decoding many runs --------------------------------------------------------------------------

class Decoder:
    """A chip that decodes many runs: it checks every program once and asks once for every guess.

    compiled(*shape) -> the chip's program; a plain decoder has no `chip`. `ready` keeps the
    programs; decoders of chips with the same programs may share it.
    """

    def __init__(self, mdl, compiled, chip=None, ready=None):
        self.E = mdl["E"]
        self.compiled = compiled
        self.chip = chip
        self.ready = {} if ready is None else ready
        self.guesses = {}

    def program(self, *shape):
        """(program, its prepared code, its cycles)."""
        if shape not in self.ready:
            P = self.compiled(*shape)
            self.ready[shape] = P, ga2_isa.prepare(P.code), ga2_isa.cycle_counts(P.code)[0]
        return self.ready[shape]

    def outputs(self, shape, toks, kc, vc):
        """{output: (ints, floats)} of one program on a block."""
        P, code, _ = self.program(*shape)
        ext = capra.ext_image(P, tiny_lm.step_inputs([self.E[tok] for tok in toks], kc, vc))
        return read_outputs(P, ga2_isa.Machine(ext).execute(code))

    def guess(self, tok):
        if tok not in self.guesses:
            self.guesses[tok] = self.chip.draft(tok)
        return self.guesses[tok]

    def plain(self, start, n):
        """(tokens, logits): n plain steps; logits is the row of integers behind each token."""
        tokens = [start]
        logits = []
        kc, vc = [], []
        for L in range(1, n + 1):
            out = self.outputs((L,), tokens[-1:], kc, vc)
            kc, vc = kc + out["k_new"][1], vc + out["v_new"][1]
            tokens.append(out["tok"][0][0][0])
            logits += out["logits"][0]
        return tokens, logits

    def speculate(self, start, n):
        """(tokens, logits, calls) of the chip's host loop."""
        logits = []

        def verify(c, toks, kc, vc):
            out = self.outputs((c, len(toks)), toks, kc, vc)
            logits[c:] = out["logits"][0]       # in place of the rows of refused guesses
            return [row[0] for row in out["tok"][0]], out["k_new"][1], out["v_new"][1]

        tokens, _, calls = spec_lm.speculate(self.chip.m, self.chip.Wd, start, n, self.chip.k,
                                             verify, self.guess)
        return tokens, logits[:n], calls

    def cycles(self, calls):
        """The cycles of a run's calls."""
        draft = ga2_isa.cycle_counts(self.chip.dprog.code)[0]
        return sum(draft if call[0] == "draft" else self.program(*call[1:])[2] for call in calls)


def spec_decoder(chip, ready=None):
    return Decoder(chip.m, chip._vprog, chip, ready)


# ---- measure -------------------------------------------------------------------------------------

def measure_runs(target, part):
    """A row per run of the target under both schemes."""
    mdl = make_target(target)
    n = part.n
    exact = ExactChip(mdl, make_draft(mdl, "noise 0"), n, 1)
    steps = Decoder(mdl, tiny_lm.Chip(mdl, n).program), Decoder(mdl, exact.plan.step)
    plain = {start: [decoder.plain(start, n) for decoder in steps] for start in part.starts}
    real = {start: tiny_lm.float_generate(mdl, start, n) for start in part.starts}
    ready = {}
    rows = []
    for draft, k in part.pairs:
        Wd = make_draft(mdl, draft)
        shapes = spec_decoder(spec_lm.SpecChip(mdl, Wd, n, k))
        one = spec_decoder(ExactChip(mdl, Wd, n, k, share=exact), ready)
        for start in part.starts:
            (shapes_plain, _), (one_plain, one_logits) = plain[start]
            shapes_tokens, _, shapes_calls = shapes.speculate(start, n)
            tokens, logits, calls = one.speculate(start, n)
            alike = calls == shapes_calls
            met = shapes.chip.calib
            rows.append({
                "target": target, "draft": draft, "k": k, "start": start,
                "per_shape": difference(shapes_tokens, shapes_plain),
                "one_plan": difference(tokens, one_plain),
                "logits_equal": logits == one_logits,
                "unmet": any(call[1:] not in met for call in shapes_calls if call[0] == "verify"),
                "float": [before(list_, real[start])
                          for list_ in (shapes_plain, shapes_tokens, tokens)],
                "cycles": [shapes.cycles(calls), one.cycles(calls)] if alike else None,
            })
    return rows


def difference(tokens, own):
    """[position, token, own token] of the first difference; None where there is none."""
    for position, (token, wanted) in enumerate(zip(tokens, own)):
        if token != wanted:
            return [position, token, wanted]
    return None


def before(tokens, real):
    """How many tokens behind the start come before the first that is not floating point's."""
    found = difference(tokens, real)
    return found[0] - 1 if found else len(real) - 1


def measure_tags(target, part):
    """{tag: [runs, tokens equal, logits equal]} with one tag left out; None: the whole plan."""
    mdl = make_target(target)
    (_, k), = part.pairs
    chips = {None: ExactChip(mdl, make_draft(mdl, "noise 0"), part.n, k, part.starts)}
    chips.update(holed_lm.holed_chips(mdl, part.n + k, part.starts))
    counts = {}
    for tag, chip in chips.items():
        chip.k = k
        steps, blocks = Decoder(mdl, chip.plan.step), spec_decoder(chip)
        counts[tag] = [0, 0, 0]
        for start in part.starts:
            plain, plain_logits = steps.plain(start, part.n)
            tokens, logits, _ = blocks.speculate(start, part.n)
            for i, holds in enumerate((True, tokens == plain, logits == plain_logits)):
                counts[tag][i] += holds
    return counts


def measure_proof(target, shapes):
    """(blocks, faults) of a target on symbols."""
    mdl = make_target(target)
    chip = ExactChip(mdl, make_draft(mdl, "noise 0"), PROOF_RUN, 1)
    return len(shapes), exact_proof.unproved(chip, shapes)
