"""Batches held against plain decoding alone: the runs of ch16_batch.py and of its tests.

A member of a pass is (request, c, k): request's block of its token at c and k guesses behind it.
"""

import itertools
import random

import capra
import spec_lm
import tiny_lm
from batch_lm import BatchChip, Sequence, batch_inputs, one_pass
from fast_lm import guess_block
from policy_lm import clipped, fixed
from runs import DRAFT_SEED

LONGEST = 12                                    # tokens of a request of a random load
COMPANY_TOKENS = 4                              # of each of three requests
COMPANY_GUESSES = (0, 1, 2)                     # k, mixed
COMPANY_STARTS = (0, 5, 9)


def make_chip(kind, seed, n, k=0, slots=1, noise=0):
    """A chip for requests of up to n tokens, its draft the bigram with that noise."""
    mdl = tiny_lm.make_model(kind, seed)
    return BatchChip(mdl, spec_lm.make_draft(mdl, noise, DRAFT_SEED), n, k, slots)


def make_mixed(kind, seed):
    """A MixedChip for random loads."""
    mdl = tiny_lm.make_model(kind, seed)
    return MixedChip(mdl, spec_lm.make_draft(mdl, 0, DRAFT_SEED), LONGEST, 0, 1)


def alone(chip, start, n):
    """Plain decoding of n tokens: {tokens, logits, k, v}; a row per position of the last three."""
    run = {"tokens": [start], "logits": [], "k": [], "v": []}
    for L in range(1, n + 1):
        x = [chip.m["E"][run["tokens"][-1]]]
        out = capra.run(chip.plan.step(L), tiny_lm.step_inputs(x, run["k"], run["v"]))
        run["tokens"] = run["tokens"] + [out["tok"][0][0][0]]
        for part, name in (("logits", "logits"), ("k", "k_new"), ("v", "v_new")):
            run[part] = run[part] + out[name][1]
    return run


def entry(chip, blocks):
    """A log entry of the pass for blocks [(tokens, kc, vc)], as BatchChip.batch makes one."""
    shapes = tuple((len(kc), len(tokens)) for tokens, kc, _ in blocks)
    P = chip.batch_program(shapes)
    ext = capra.ext_image(P, batch_inputs(chip.m, blocks))
    return {"kind": "batch", "code": P.code, "ext": ext, "shapes": shapes}


# ---- every company -------------------------------------------------------------------------------

def companies(n=COMPANY_TOKENS, guesses=COMPANY_GUESSES, requests=3):
    """Every pass that `requests` requests of n tokens can meet, as a list of members, in any order.

    A request takes part or not (it has not come, waits, or is done), at any of its tokens, with any
    k that it still wants. After a pass that leaves what plain decoding would, it is at some token
    again: so every history of arrivals and ks is a chain of these passes.
    """
    blocks = [(c, k) for c in range(n) for k in guesses if k < n - c]
    for present in range(1, requests + 1):
        for order in itertools.permutations(range(requests), present):
            for chosen in itertools.product(blocks, repeat=present):
                yield [(request, c, k) for request, (c, k) in zip(order, chosen)]


def histories(advance, n=COMPANY_TOKENS, guesses=COMPANY_GUESSES):
    """In how many ways the requests can be served: who takes part in each pass, with which k.

    advance[request][c, k]: new tokens from that block.
    """
    known = {}

    def count(places):
        if all(c == n for c in places):
            return 1
        if places not in known:
            ways = [[c] + [c + advance[r][c, k] for k in guesses if k < n - c]
                    for r, c in enumerate(places)]      # each stays out, or moves on
            known[places] = sum(count(after) for after in itertools.product(*ways)
                                if after != places)
        return known[places]

    return count((0,) * len(advance))


def advances(runs, draft, n=COMPANY_TOKENS, guesses=COMPANY_GUESSES):
    """What `histories` wants, from the plain runs and the draft."""
    result = []
    for run in runs:
        moves = {}
        for c in range(n):
            for k in guesses:
                if k < n - c:
                    block = guess_block(run["tokens"][c], k, draft)
                    moves[c, k] = 1 + spec_lm.agreeing(block[1:], run["tokens"][c + 1:])
        result.append(moves)
    return result


def wrong_pass(chip, runs, draft_after, members):
    """Sentences on what a pass of `members` gives otherwise than the plain `runs`, if it does."""
    running = []
    for request, c, k in members:
        run = runs[request]
        running.append(Sequence(request, len(run["tokens"]) - 1, fixed(k), run["tokens"][:c + 1],
                                run["k"][:c], run["v"][:c]))
    chip.log = []
    one_pass(running, chip.batch, draft_after)
    entry, = chip.log
    return [f"{members}: {problem}"
            for one, (_, c, _), logits in zip(running, members, entry["logits"])
            for problem in differences(one, c, logits, runs[one.request])]


def differences(one, c, logits, run):
    """Sentences on a sequence that is not as alone after a block behind c cached rows."""
    here = len(one.kc)
    problems = []
    if one.tokens != run["tokens"][:here + 1]:
        problems.append(f"request {one.request} is at {one.tokens}, alone at "
                        f"{run['tokens'][:here + 1]}")
    if (one.kc, one.vc) != (run["k"][:here], run["v"][:here]):
        problems.append(f"the cache of request {one.request} differs")
    if logits[:here - c] != run["logits"][c:here]:
        problems.append(f"the logits of request {one.request} behind {c} differ")
    return problems


# ---- random loads --------------------------------------------------------------------------------

class MixedChip(BatchChip):
    """A BatchChip whose requests have a k each, `ks` in their order."""

    ks = ()

    def generate(self, requests):
        self.left = list(self.ks)
        return super().generate(requests)

    def policy(self, n):
        return clipped(self.left.pop(0))


def random_load(seed):
    """(requests, their ks, slots), everything small and uneven."""
    R = random.Random(seed)
    count = R.randrange(1, 7)
    requests = [(R.randrange(tiny_lm.V), R.randrange(LONGEST + 1)) for _ in range(count)]
    return requests, [R.randrange(4) for _ in range(count)], R.randrange(1, 5)


def wrong_load(chip, runs, seed):
    """(sentences, passes): what a random load gives otherwise than each request alone.

    chip: a MixedChip; runs: {start: its plain run, long enough}.
    """
    requests, chip.ks, chip.slots = random_load(seed)
    tokens, stats, log = chip.generate(requests)
    problems = []
    logits = [[] for _ in requests]
    for entry in log:
        for request, (c, _), rows in zip(entry.get("requests", ()), entry.get("shapes", ()),
                                         entry.get("logits", ())):
            logits[request][c:] = rows          # in place of the rows of refused guesses
        if len(entry.get("requests", ())) > chip.slots:
            problems.append(f"load {seed}: {entry['requests']} in a pass of {chip.slots} slots")
    for i, (start, n) in enumerate(requests):
        run = runs[start]
        if tokens[i] != run["tokens"][:n + 1]:
            problems.append(f"load {seed}: request {i} has {tokens[i]}, alone "
                            f"{run['tokens'][:n + 1]}")
        if logits[i] != run["logits"][:n]:
            problems.append(f"load {seed}: the logits of request {i} differ")
        if stats[i]["emitted"] != n or stats[i]["cache"] != n:
            problems.append(f"load {seed}: request {i} of {n} tokens has the books {stats[i]}")
    return problems, sum(entry["kind"] == "batch" for entry in log)
