"""What the scripts share: runs by their names, the table, and programs on the RTL."""

import argparse
import functools
import random
from collections import namedtuple
from pathlib import Path

import cli
import ga2_progs
import hw
import spec_lm
import spec_tests
import tiny_lm
from ga2_isa import cycle_counts

TOKENS = 32
START = 0
DRAFT_SEED = 1
IMAGE_WORDS = 4096                              # more than a program here uses; half the reading

Run = namedtuple("Run", "name model k noise")   # k None: plain decoding, no draft
RUNS = (
    Run("structured: plain", "structured", None, None),
    Run("structured: k=3 noise 0", "structured", 3, 0),
    Run("structured: k=3 noise 3", "structured", 3, 3),
    Run("structured: k=3 noise 4", "structured", 3, 4),
    Run("random 1: plain", "random", None, None),
    Run("random 1: k=1", "random", 1, 0),
    Run("random 1: k=3", "random", 3, 0),
)

HEADER = ("run", "tokens equal", "accepted", "proposed", "blocks", "tokens/block", "programs",
          "model cycles", "RTL cycles", "speedup")


def make_target(name):
    """A model by its name: "random 7", "structured" or "sharp"."""
    if name == "sharp":
        return spec_tests.sharp_model()
    kind, _, seed = name.partition(" ")
    return tiny_lm.make_model(kind, int(seed or 1))


def make_draft(mdl, name):
    """Wd (D x V) of a draft by its name.

    "noise 3": the bigram with that noise; "worst": it guesses what the bigram holds least likely;
    "random 7": logits drawn with that seed, which know nothing of the model.
    """
    kind, _, value = name.partition(" ")
    if kind == "random":
        R = random.Random(int(value))
        logits = [[R.gauss(0, 1) for _ in range(tiny_lm.V)] for _ in range(tiny_lm.V)]
        return spec_lm.solve(mdl["E"], logits)
    Wd = spec_lm.make_draft(mdl, float(value or 0), DRAFT_SEED)
    return [[-weight for weight in row] for row in Wd] if kind == "worst" else Wd


def arguments(description, argv):
    """The options --sim and --out of a script that replays programs."""
    parser = argparse.ArgumentParser(description=description)
    hw.add_option(parser)
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the outputs (default out/)")
    return parser.parse_args(argv)


def rule_tokens():
    """What the structured model must say: START and TOKENS more, by its rule."""
    tokens = [START]
    while len(tokens) <= TOKENS:
        tokens.append(tiny_lm.f_next(tokens[-1]))
    return tokens


def cells(row):
    """A row of the chapter's table as text, in the order of HEADER; "-": nothing to count."""
    def cell(value, form="{}"):
        return "-" if value is None else form.format(value)

    per_block = row["blocks"] and (row["accepted"] + row["blocks"]) / row["blocks"]
    return (row["run"], "yes" if row["tokens_equal"] else "NO", cell(row["accepted"]),
            cell(row["proposed"]), cell(row["blocks"]), cell(per_block, "{:.2f}"),
            row["programs"], f"{row['model_cycles']:,}", cell(row["rtl_cycles"], "{:,}"),
            f"{row['speedup']:.2f}x")


def record(entry, words=IMAGE_WORDS):
    """The record of a log entry's program in an image with `words` of external memory."""
    return ga2_progs.record(entry["code"], entry["ext"][:words], words=words)


def count(log, sims, words=IMAGE_WORDS):
    """The five counters of each program of a log, which the RTL must share where there are `sims`.

    Raises UserError where a counter, or the memory afterwards, differs.
    """
    model = [cycle_counts(entry["code"]) for entry in log]
    records = cli.parallel(functools.partial(record, words=words), log) if sims else []
    for sim, counters in hw.counters(records, sims, ext=words).items():
        if counters != model:
            raise cli.UserError(f"the RTL counts other cycles than the model in {sim}")
    return model


def rtl_line(sims, programs, not_checked):
    """What the RTL was checked with, in one sentence."""
    if not sims:
        return f"The RTL was NOT checked ({not_checked}); the cycles are the model's."
    line = (f"RTL: {programs} programs replayed in {' and '.join(sims)}; every word of external "
            "memory and all five counters are the model's.")
    return line if not not_checked else f"{line} NOT in all that were asked for: {not_checked}."
