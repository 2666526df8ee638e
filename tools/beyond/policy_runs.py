"""Every draft under every policy, beside hindsight: the parts of ch16_policy that take time.

A draft here is a function that makes a new `ahead` of policy_lm, without cycles on the chip. The
target's tokens come from the programs of the chip; the blocks are then played on these tokens and
their cycles added up from their programs (hindsight_tests holds this against the chip).
"""

import exact_runs
import host_lm
import limit
import spec_lm
import tiny_lm
from fast_lm import FastChip
from hindsight import hindsight, play, right_guesses
from lookup_lm import SPAN, LookupChip, lookup
from policy_lm import MOST, clipped, follow, planned, prices, trusted
from runs import START, TOKENS, make_draft, make_target

OTHER_STARTS = (1, 4, 7, 10, 13)                # where the constants of the drafts were chosen
SHOWN_K = (1, 3, 7)                             # fixed k of the tables
WINNERS = ("lookup", "two-token")               # run on the chip's simulator, too
REPLAYED = "random 1"                           # the target whose runs the RTL repeats


def drafts(answers, fitted, left_out):
    """{name: function that makes its `ahead`}.

    answers: of the chapter's bigram after each token; fitted: the target's floating-point runs from
    every start, left_out: those from other starts than the run that is measured.
    """
    makers = {
        "lookup": lambda: trusted(lookup, SPAN),
        "bigram": lambda: trusted(lambda tokens: answers[tokens[-1]], 1),
    }
    for order, name in ((1, "adaptive bigram"), (2, "two-token")):
        for runs, words in ((fitted, ""), (left_out, ", start left out")):
            counts = host_lm.count_runs(runs, order)
            makers[name + words] = table_maker(counts, order)
    return makers


def table_maker(counts, order):
    return lambda: host_lm.table(counts, order)


def measure_target(name):
    """{start: {draft: a `measure_draft`}} of a target by its name."""
    mdl = make_target(name)
    chip = FastChip(mdl, make_draft(mdl, "noise 0"), TOKENS, 1)
    steps = exact_runs.Decoder(mdl, chip.plan.step)
    answers = chip.draft_table()
    fitted = host_lm.fit_runs(mdl, range(tiny_lm.V))
    cost = prices(chip.cost)                    # its own: an add may or may not rescale
    floors = [limit.floor(m) for m in range(MOST + 2)]
    results = {}
    for start in (START, *OTHER_STARTS):
        tokens, _ = steps.plain(start, TOKENS)
        others = [run for run in fitted if run[0] != start]
        results[start] = {draft: measure_draft(tokens, make(), cost, floors)
                          for draft, make in drafts(answers, fitted, others).items()}
    return results


def measure_draft(tokens, ahead, cost, floors):
    """{policy: cycles} of a run: plain, fixed k (clipped), planned, hindsight; and the limit.

    The limit is hindsight with a block of m rows at floors[m], which no program goes below.
    """
    ahead = remembered(tokens, ahead)

    def played(policy):
        return play(tokens, TOKENS, follow(TOKENS, policy, ahead), cost)[1]

    cycles = {f"k = {k}": played(clipped(k)) for k in range(1, MOST + 1)}
    cycles["best k afterwards"] = min(cycles.values())
    cycles["plain"] = sum(cost(c, 1) for c in range(TOKENS))
    cycles["planned"] = played(planned(TOKENS, cost))
    right = right_guesses(tokens, TOKENS, ahead)
    cycles["hindsight"] = hindsight(TOKENS, right, cost)[0]
    cycles["limit"] = hindsight(TOKENS, right, lambda c, m: floors[m])[0]
    return cycles


def remembered(tokens, ahead):
    """`ahead` asked once at each position of a run: it learns from the tokens alone."""
    told = [ahead(tokens[:i], MOST) for i in range(1, TOKENS + 1)]

    def again(so_far, most):
        guesses, later = told[len(so_far) - 1]
        return guesses[:most], later

    return again


def run_winner(job):
    """(tokens equal, cycles, log) of a run from START, job = (target, winner).

    The log is empty where the RTL does not repeat the run.
    """
    target, draft = job
    mdl = make_target(target)
    chip = (LookupChip if draft == "lookup" else host_lm.TableChip)(mdl, TOKENS, MOST)
    tokens, _, log = chip.generate(START, TOKENS)
    equal = tokens == chip.plain(START, TOKENS)[0]
    return equal, spec_lm.cycles_of(log), log if target == REPLAYED else []
