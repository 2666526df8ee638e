"""What the scripts share: the run they measure, its programs as records, and the RTL's counters."""

import argparse
from collections import namedtuple
from pathlib import Path

import cli
import ga2_progs
import hw
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


def record(entry):
    """The record of a log entry's program in an image with IMAGE_WORDS of external memory."""
    return ga2_progs.record(entry["code"], entry["ext"][:IMAGE_WORDS], words=IMAGE_WORDS)


def count(log, sims):
    """The five counters of each program of a log, which the RTL must share where there are `sims`.

    Raises UserError where a counter, or the memory afterwards, differs.
    """
    model = [cycle_counts(entry["code"]) for entry in log]
    records = cli.parallel(record, log) if sims else []
    for sim, counters in hw.counters(records, sims, ext=IMAGE_WORDS).items():
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
