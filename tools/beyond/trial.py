"""A reader's own run as data, block by block: what ch16_try prints, writes as JSON and draws.

Everything here calls the decoders of model/: no token and no cycle is computed anew.
"""

from collections import namedtuple

import cli
import sample_lm
import tiny_lm
from chance import Seeded
from exact_lm import ExactChip
from exact_runs import difference
from fast_lm import FastChip
from hindsight import hindsight, right_guesses
from limit import floor
from lookup_lm import LookupChip
from pair_lm import PairChip
from policy_lm import prices
from runs import make_draft, make_target
from sample_lm import SampleChip
from spec_lm import SpecChip, cycles_of
from tree_lm import TreeChip, accepted_path, chain

DECODERS = ("chapter", "exact", "fast", "tree", "sampled")
OWN_DRAFTS = {"pair": PairChip, "lookup": LookupChip}       # drafts with a chip of their own
MATRICES = ("bigram", "noise", "worst", "random")       # drafts that are a matrix Wd

# What one run is made of; target and draft by name, as runs.make_target and make_draft take them.
Setting = namedtuple("Setting", "target draft decoder k tokens start temperature rule seed rows")


# ---- the chip ------------------------------------------------------------------------------------

def make_chip(setting, mdl):
    """The chip that decodes the setting.

    Raises UserError where the decoder cannot take the draft.
    """
    kind = setting.draft.partition(" ")[0]
    n, k = setting.tokens, setting.k
    if kind not in MATRICES:
        if setting.decoder != "fast":
            raise cli.UserError(f"--decoder {setting.decoder} cannot take --draft {kind}; give "
                                f"--decoder fast, or one of the drafts {', '.join(MATRICES)}")
        return OWN_DRAFTS[kind](mdl, n, k)
    if setting.decoder == "sampled":
        fitted = setting.draft == "bigram"      # of distributions, not of counts
        Wd = sample_lm.fit_draft(mdl, setting.temperature) if fitted \
            else make_draft(mdl, setting.draft)
        return SampleChip(mdl, Wd, n, k, setting.temperature, setting.rule)
    if setting.decoder == "tree":
        return TreeChip(mdl, make_draft(mdl, setting.draft), n, setting.rows)
    kinds = {"chapter": SpecChip, "exact": ExactChip, "fast": FastChip}
    return kinds[setting.decoder](mdl, make_draft(mdl, setting.draft), n, k)


def name(setting):
    """What a run is called beside others of its target."""
    size = f"rows={setting.rows}" if setting.decoder == "tree" else f"k={setting.k}"
    words = [setting.decoder, setting.draft, size]
    if setting.decoder == "sampled":
        words.insert(1, f"{setting.rule} T={setting.temperature:g}")
    return ", ".join(words)


# ---- measure -------------------------------------------------------------------------------------

def measure(setting):
    """(the run as data, the log of its programs, the plain run's log)."""
    mdl = make_target(setting.target)
    chip = make_chip(setting, mdl)
    place = setting.start, setting.tokens
    if setting.decoder == "sampled":
        plain, plain_log = chip.plain(*place, setting.seed)
        blocks = watch_rows(chip, setting)
        said, stats, log = chip.generate(*place, setting.seed)
    else:
        plain, plain_log = plain_run(setting, mdl, chip)
        blocks = watch(chip)
        said, stats, log = chip.generate(*place)
    log = list(log)                             # the chip's own goes on below
    data = {
        **setting._asdict(),
        "run": f"{setting.target}: {name(setting)}",
        "said": said,
        "plain": plain,
        "tokens_equal": said == plain,
        "first_difference": difference(said, plain),
        "before": cycles_of(entry for entry in log if entry["kind"] == "table"),
        "blocks": tell_blocks(blocks, log, stats["cache"], said),
        "proposed": stats["proposed"],
        "accepted": stats["accepted"],
        "programs": len(log),
        "cycles": cycles_of(log),
        "plain_cycles": cycles_of(plain_log),
        "hindsight": hindsight_cycles(setting, chip, said),
        "limit": sum(floor(entry["m"]) for entry in log if entry["kind"] == "verify"),
    }
    return data, log, plain_log


def plain_run(setting, mdl, chip):
    """(tokens, log) of plain decoding with the scales that the decoder's own programs have."""
    if setting.decoder == "chapter":
        return tiny_lm.Chip(mdl, setting.tokens).generate(setting.start, setting.tokens)
    return chip.plain(setting.start, setting.tokens)


def watch(chip):
    """A list that the chip's `verify` fills in its next run: (rows, choices) of each block."""
    blocks = []
    verify = chip.verify

    def watched(*block):
        answer = verify(*block)
        toks = block[-3]                        # in front of the cache; a tree has parents, too
        blocks.append((list(toks), list(answer[0])))
        return answer

    chip.verify = watched
    return blocks


def watch_rows(chip, setting):
    """As `watch`, for a sampling chip: the choices are its darts'; rejection has none."""
    blocks = []
    run_block = chip.run_block
    chance = Seeded(setting.seed)

    def watched(toks, kc, vc):
        answer = run_block(toks, kc, vc)
        choice = [chance.draw(len(kc) + i, row) for i, row in enumerate(answer[0], 1)]
        blocks.append((list(toks), choice if setting.rule == "seeded" else None))
        return answer

    chip.run_block = watched
    return blocks


def tell_blocks(blocks, log, cache, said):
    """A dict per block: what went in, what the target said, what was kept and what it cost.

    cache: the rows it has at the end; said: the tokens of the run.
    """
    told = []
    passes = [entry for entry in log if entry["kind"] == "verify"]
    ends = [entry["c"] for entry in passes[1:]] + [cache]
    waiting = []                                # programs since the last verifier's
    for entry in log:
        if entry["kind"] == "verify":
            (block, choice), c, end = blocks[len(told)], entry["c"], ends[len(told)]
            parents = entry.get("parents", list(chain(len(block))))
            path = accepted_path(parents, block, choice) if choice else list(range(end - c))
            free = choice[path[-1]] if choice else said[end]
            told.append({
                "cached": c, "block": block, "parents": parents, "choice": choice, "path": path,
                "accepted": len(path) - 1, "new": [block[row] for row in path[1:]] + [free],
                "draft_cycles": cycles_of(waiting), "verify_cycles": cycles_of([entry]),
            })
            waiting = []
        elif entry["kind"] == "draft":
            waiting.append(entry)
    return told


def hindsight_cycles(setting, chip, said):
    """The cheapest blocks for this run and its draft's answers, the draft free of cost.

    The blocks are fast_lm's, under the scale plan of the run's own length: an add may have an
    operand to rescale under one plan and not under another. None for trees and samples, whose
    blocks are others.
    """
    if setting.decoder in ("tree", "sampled"):
        return None
    ahead = chip.ahead() if setting.draft == "lookup" else answers_of(chip)
    right = right_guesses(said, setting.tokens, ahead)
    share = chip if isinstance(chip, ExactChip) else None
    blocks = LookupChip(chip.m, setting.tokens, 0, share=share)
    return hindsight(setting.tokens, right, prices(blocks.cost))[0]


def answers_of(chip):
    """ahead(tokens, most), as in policy_lm, for a draft on the chip."""
    draft_after = chip.drafts() if isinstance(chip, FastChip) else lambda tokens: chip.draft

    def ahead(tokens, most):
        draft = draft_after(tokens)
        guesses, last = [], tokens[-1]
        for _ in range(most):
            last = draft(last)
            guesses.append((last, 1))
        return guesses, 1

    return ahead


# ---- rows of the chapter's table -----------------------------------------------------------------

def plain_row(run, replayed):
    """The plain run beside a run, as a row of the chapter's table."""
    return {
        "run": f"{run['target']}: {run['decoder']}, plain", "tokens_equal": True,
        "accepted": None, "proposed": None, "blocks": None, "programs": len(run["plain"]) - 1,
        "model_cycles": run["plain_cycles"],
        "rtl_cycles": run["plain_cycles"] if replayed else None, "speedup": 1.0,
        "of hindsight": None, "of the limit": None,
    }


def row(run, replayed):
    """A run as a row of the chapter's table; replayed: the RTL counted the same cycles."""
    return {
        "run": run["run"],
        "tokens_equal": run["tokens_equal"],
        "accepted": run["accepted"],
        "proposed": run["proposed"],
        "blocks": len(run["blocks"]),
        "programs": run["programs"],
        "model_cycles": run["cycles"],
        "rtl_cycles": run["cycles"] if replayed else None,
        "speedup": round(run["plain_cycles"] / run["cycles"], 2),
        "of hindsight": run["hindsight"] and run["hindsight"] / run["cycles"],
        "of the limit": run["limit"] / run["cycles"],
    }


def measure_row(setting):
    """The row of a run, for a worker."""
    return row(measure(setting)[0], False)
