"""A run of your own: another target, draft, decoder, k, start or length, told block by block.

    python3 tools/ch16_try.py [--target T] [--draft D] [--decoder X] [--k K] [--tokens N] ...

Without options it prints the blocks of example A. Several values of --draft, --decoder or --k,
separated by commas, give a row each instead of the story. Writes nothing unless --svg is given.
"""

import argparse
import itertools
import json
import math
import os
import re
import statistics
import sys
from pathlib import Path

import paths
import block_figure
import cli
import exact_runs
import hw
import runs
import sample_lm
import trial
from ga2_isa import K_MAX
from tiny_lm import V

EXAMPLES = """\
examples:
  which k is best for random target 7?
    python3 tools/ch16_try.py --target random:7 --decoder fast --tokens 32 --k 1-15
  what does a draft of noise 5 cost?
    python3 tools/ch16_try.py --target structured --draft bigram,noise:5 --tokens 32
  does a tree of guesses help where the draft is weak?
    python3 tools/ch16_try.py --target structured --draft noise:4 --decoder fast,tree --tokens 32
  where do the chapter's scheme and one scale plan first differ?
    python3 tools/ch16_try.py --target random:4 --start 9 --k 1 --decoder chapter,exact --tokens 32
  what does sampling at T = 0.15 do to acceptance?
    python3 tools/ch16_try.py --decoder fast,sampled --temperature 0.15 --tokens 32
  how much does that decoder gain on 24 random targets?
    python3 tools/ch16_try.py --decoder fast --k 3,7 --tokens 32 --repeat 24
  what does the Verilog count?
    python3 tools/ch16_try.py --target structured --tokens 8 --sim icarus
"""
RANGE = re.compile(r"(\d+)-(\d+)", re.ASCII)
GREEN, RED, YELLOW = "32", "31", "33"           # kept, refused, free
SHARES = ("of hindsight", "of the limit")       # columns behind the chapter's
SPREAD = ("least", "1st quartile", "median", "3rd quartile", "most", "geometric mean")


# ---- the options ---------------------------------------------------------------------------------

def arguments(argv):
    parser = cli.Parser(
        description="Decode a run of your own and tell it block by block.", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="random:1", type=target, metavar="T",
                        help="structured, sharp or random:SEED (default random:1)")
    parser.add_argument("--draft", default=["bigram"], type=several(draft), metavar="D",
                        help="bigram, noise:X (the bigram with noise of size X), worst, "
                             "random:SEED; with --decoder fast also pair (the last two tokens) "
                             "and lookup (the run's own past) (default bigram)")
    parser.add_argument("--decoder", default=["chapter"], type=several(decoder), metavar="X",
                        help="chapter (a calibration per shape), exact (one scale plan), fast "
                             "(one plan, better programs), tree (of guesses, the cheapest) or "
                             "sampled (default chapter)")
    parser.add_argument("--k", default=[3], type=several(guesses), metavar="K",
                        help="guesses a block, 0 or more; 1-15 for all of them (default 3)")
    parser.add_argument("--tokens", default=24, type=whole("tokens", 1, K_MAX), metavar="N",
                        help=f"tokens to decode, 1 to {K_MAX} (default 24)")
    parser.add_argument("--start", default=0, type=whole("start", 0, V - 1), metavar="T",
                        help=f"the first token, 0 to {V - 1} (default 0)")
    parser.add_argument("--rows", default=8, type=whole("rows", 1, 16), metavar="N",
                        help="of --decoder tree: most rows of a block, 1 to 16 (default 8)")
    parser.add_argument("--temperature", default=[0.15], type=several(temperature), metavar="X",
                        help="of --decoder sampled, above 0 (default 0.15)")
    parser.add_argument("--rule", default="seeded", type=rule, metavar="R",
                        help="of --decoder sampled: seeded (a seed's tokens are plain sampling's) "
                             "or rejection (only their law is) (default seeded)")
    parser.add_argument("--seed", default=1, type=whole("seed", 0, None), metavar="N",
                        help="of --decoder sampled, 0 or more (default 1)")
    parser.add_argument("--repeat", type=whole("repeat", 1, None), metavar="N",
                        help="run the targets random:1 to random:N; print how the speedup spreads")
    parser.add_argument("--sim", default="none", choices=(*hw.SIMULATORS, "both", "none"),
                        help="replay every program on the Verilog (default none)")
    parser.add_argument("--quiet", action="store_true", help="print the table without the story")
    parser.add_argument("--json", action="store_true", help="print all of it as JSON")
    parser.add_argument("--svg", action="store_true", help="draw the run: ch16_try.svg")
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the picture (default out/)")
    return parser.parse_args(argv)


def whole(name, least, most):
    """A type of argparse: a whole number from `least` to `most` (None: no limit)."""
    limits = f"from {least} to {most}" if most is not None else f"{least} or more"

    def read(text):
        if not (text.isascii() and text.isdigit()) or int(text) < least \
                or most is not None and int(text) > most:
            raise argparse.ArgumentTypeError(f"{text!r}: give a whole number, {limits}")
        return int(text)

    return read


def several(read):
    """A type of argparse: values separated by commas, each read by `read`, which may give many."""
    def read_all(text):
        values = []
        for part in text.split(","):
            found = read(part)
            values += found if isinstance(found, list) else [found]
        return values

    return read_all


def target(text):
    kind, colon, seed = text.partition(":")
    if text not in ("structured", "sharp") and not (kind == "random" and is_whole(seed)):
        raise argparse.ArgumentTypeError(f"{text!r}: give structured, sharp or random:SEED")
    return text.replace(":", " ")


def draft(text):
    kind, colon, value = text.partition(":")
    good = text in ("bigram", "pair", "lookup", "worst") or kind == "random" and is_whole(value) \
        or kind == "noise" and is_size(value)
    if not good:
        raise argparse.ArgumentTypeError(f"{text!r}: give bigram, noise:X as noise:3, pair, "
                                         "lookup, worst or random:SEED as random:7")
    return text.replace(":", " ")


def decoder(text):
    if text not in trial.DECODERS:
        raise argparse.ArgumentTypeError(f"{text!r}: give {', '.join(trial.DECODERS)}")
    return text


def guesses(text):
    """k, or all k of a range."""
    found = RANGE.fullmatch(text)
    first, last = found.groups() if found else (text, text)
    if not (is_whole(first) and int(first) <= int(last) < K_MAX):
        raise argparse.ArgumentTypeError(f"{text!r}: give a whole number from 0 to {K_MAX - 1}, "
                                         "or a range as 1-15")
    return list(range(int(first), int(last) + 1))


def temperature(text):
    if not (is_size(text) and float(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r}: give a number above 0, as 0.15")
    return float(text)


def rule(text):
    if text not in sample_lm.RULES:
        raise argparse.ArgumentTypeError(f"{text!r}: give {' or '.join(sample_lm.RULES)}")
    return text


def is_whole(text):
    return text.isascii() and text.isdigit()


def is_size(text):
    return re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII) is not None


# ---- measure -------------------------------------------------------------------------------------

def settings(args, target):
    """A Setting for each decoder, draft and k."""
    return [trial.Setting(target, draft, decoder, k, args.tokens, args.start, temperature,
                          args.rule, args.seed, args.rows)
            for decoder, draft, k in itertools.product(args.decoder, args.draft, args.k)
            for temperature in (args.temperature if decoder == "sampled" else args.temperature[:1])]


def measure(args, sims):
    """(runs, rows): each run as data, and the table's rows, a plain one in front of its decoder's.

    Every program is replayed on `sims`; raises UserError where the RTL counts other cycles.
    """
    measured = cli.parallel(trial.measure, settings(args, args.target))
    rows = []
    for number, (run, log, plain_log) in enumerate(measured):
        if number == 0 or run["decoder"] != measured[number - 1][0]["decoder"]:
            runs.count(plain_log, sims)
            rows.append(trial.plain_row(run, bool(sims)))
        runs.count(log, sims)
        rows.append(trial.row(run, bool(sims)))
    return [run for run, _, _ in measured], rows


def measure_many(args):
    """{setting's name: [row per target]} of the targets random 1 to N."""
    jobs = [setting for seed in range(1, args.repeat + 1)
            for setting in settings(args, f"random {seed}")]
    rows = {}
    share = 4 * cli.cores()                     # jobs between two words on the terminal
    for first in range(0, len(jobs), share):
        cli.progress(f"{first} of {len(jobs)} runs ...")
        some = jobs[first:first + share]
        for setting, row in zip(some, cli.parallel(trial.measure_row, some)):
            rows.setdefault(trial.name(setting), []).append(row)
    return rows


def spread(rows):
    """How the speedups of some rows spread: {what: number}."""
    speedups = sorted(row["speedup"] for row in rows)
    quarters = speedups * 3 if len(speedups) == 1 else \
        statistics.quantiles(speedups, n=4, method="inclusive")
    mean = math.exp(math.fsum(map(math.log, speedups)) / len(speedups))
    return dict(zip(SPREAD, (speedups[0], *quarters, speedups[-1], mean)))


# ---- format --------------------------------------------------------------------------------------

def story(run, paint):
    """A run's blocks, told one after the other; paint(text, colour) -> text."""
    lines = [f"{run['run']}, from token {run['start']}"]
    if run["before"]:
        lines.append(f"before the first block: {run['before']:,} cycles for the draft's table")
    for number, block in enumerate(run["blocks"], 1):
        lines += ["", *tell(number, block, paint)]
    return "\n".join(lines)


def tell(number, block, paint):
    """The lines of one block."""
    last, *guesses = block["block"]
    choice, path, parents = block["choice"], block["path"], block["parents"]
    accepted, cached = block["accepted"], block["cached"]
    judged = [GREEN if row in path else RED if parents[row] in path else None
              for row in range(len(parents))]
    said = [GREEN if row in path[:-1] else YELLOW if row == path[-1] else None
            for row in range(len(parents))]
    kept = f"kept {accepted} of {len(guesses)}; " if guesses else ""
    lines = [f"block {number}: last token {last}, {cached} rows cached"]
    if guesses:
        if parents != [None, *range(len(guesses))]:
            lines.append("  behind row          " + painted(parents[1:], judged[1:], paint))
            lines.append("  guesses             " + painted(guesses, judged[1:], paint))
        else:
            lines.append("  guesses          " + painted(guesses, judged[1:], paint))
    if choice:
        lines.append("  target's choices " + painted(choice, said, paint))
    return lines + [
        f"  {kept}the free token is {block['new'][-1]}; "
        f"the cache keeps rows {cached} to {cached + accepted}",
        f"  {block['draft_cycles']:,} cycles to guess, {block['verify_cycles']:,} to verify "
        f"{len(block['block'])} rows",
    ]


def painted(tokens, colours, paint):
    """Tokens in columns, each in its colour, None for none."""
    return "".join(paint(f"{token:3}", colour) if colour else f"{token:3}"
                   for token, colour in zip(tokens, colours))


def painter(stream):
    """paint(text, colour) for a stream: colours on a terminal, unless NO_COLOR asks for none."""
    if stream.isatty() and not os.environ.get("NO_COLOR"):
        return lambda text, colour: f"\033[{colour}m{text}\033[0m"
    return lambda text, colour: text


def table(rows):
    def share(value):
        return "-" if value is None else f"{100 * value:.0f} %"

    return cli.format_table((*runs.HEADER, *SHARES), [
        (*runs.cells(row), *(share(row[name]) for name in SHARES)) for row in rows])


def remarks(measured):
    """A sentence for each run that is not the plain one, and where two decoders first differ."""
    lines = []
    for run in measured:
        if run["first_difference"]:
            position, token, plain = run["first_difference"]
            why = "rejection promises the law, not a seed's tokens" \
                if run["decoder"] == "sampled" else "its scales do not promise equal tokens"
            lines.append(f"{run['run']}: token {position} is {token}, plain decoding says "
                         f"{plain}; {why}.")
    greedy = [run for run in measured if run["decoder"] != "sampled"]
    for run in greedy[1:]:
        found = exact_runs.difference(greedy[0]["said"], run["said"])
        if found and run["decoder"] != greedy[0]["decoder"]:
            lines.append("{} and {} first differ at token {}: {} and {}.".format(
                greedy[0]["run"], run["run"], *found))
    if len(measured) > 1:
        best = min(measured, key=lambda run: run["cycles"] / run["plain_cycles"])
        lines.append(f"Fastest: {best['run']}, {best['plain_cycles'] / best['cycles']:.2f}x.")
    return lines


def picture(run):
    """The run's blocks as figure 16.1 draws two of them.

    Raises UserError where there are no choices to draw.
    """
    if run["decoder"] == "tree" or run["blocks"][0]["choice"] is None:
        raise cli.UserError("--svg draws chains of guesses and the target's choices; --decoder "
                            "tree and --rule rejection have none, leave one of them out")
    return block_figure.wrapped("ch16_try", run["run"], f"{len(run['blocks'])} blocks. Guesses "
                                "stand above the target's choices for the same position.",
                                run["blocks"])


def spread_table(many):
    lines = []
    for name, rows in many.items():
        equal = sum(row["tokens_equal"] for row in rows)
        lines.append((name, f"{equal} of {len(rows)}",
                      *(f"{value:.2f}x" for value in spread(rows).values())))
    return cli.format_table(("run", "tokens equal", *SPREAD), lines)


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments(argv)
    if args.repeat:
        many = measure_many(args)
        data = {name: {"rows": rows, **spread(rows)} for name, rows in many.items()}
        print(json.dumps(data, indent=2) if args.json else spread_table(many))
        return 0
    sims, complete, not_checked = hw.chosen(args.sim)
    measured, rows = measure(args, sims)
    if args.svg:
        cli.write_text(args.out / "ch16_try.svg", picture(measured[0]).render())
    if args.json:
        print(json.dumps({"runs": measured, "rows": rows}, indent=2))
    else:
        told = [] if args.quiet or len(measured) > 1 else [story(measured[0], painter(sys.stdout))]
        programs = sum(row["programs"] for row in rows)
        print("\n\n".join(told + [table(rows), "\n".join(
            remarks(measured) + [runs.rtl_line(sims, programs, not_checked)])]))
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(cli.run(main))
