"""Running example B: when does guessing pay? Measured, modelled, and derived for a large model.

    python3 tools/ch16_example_b.py [--out DIR]

1. Acceptance and speedup on the chip for 5 drafts (noise in the rule) by k = 1 .. 5 guesses: 32
   tokens of the structured model, in cycles of the model, which are those of the RTL.
2. A model of the speedup from unit costs, a being the share of accepted guesses:
       E = 1 + a + .. + a^k = (1 - a^(k+1)) / (1 - a) tokens a block,
       speedup = E * t_plain / (k * t_draft + t_verify)
3. Serving a large model: speedup E / (1 + k c), where a draft step costs c of a target step and
   verifying a block costs what one step does. Derived, not measured.

Writes ch16_example_b.json (all numbers) and ch16_example_b_out.txt (what it prints) into out/.
"""

import paths

import argparse
import sys
from pathlib import Path

import cli
import ga2_isa
import spec_lm
import tiny_lm
from runs import DRAFT_SEED, START, TOKENS, rule_tokens

NOISES = (0, 3, 4, 5, 6)
GUESSES = (1, 2, 3, 4, 5)

MODEL_K = 3                                     # the geometric model, for these drafts
MODEL_NOISES = (0, 3, 4)
MODEL_CONTEXT = 13                              # its t_plain: a step with 13 tokens in context ..
MODEL_CACHE = 12                                # .. and its t_verify: a block behind 12 cached rows
SHOWN_CACHES = (4, 12, 24)

ACCEPTANCES = (0.6, 0.8, 0.9)                   # serving: a,
SERVED_GUESSES = (2, 4, 8)                      # k
DRAFT_COSTS = (0.01, 0.05, 0.15)                # and c
CURVE_COST = 0.05                               # the c for which the best k is looked for,
CURVE_GUESSES = range(1, 17)                    # among these


# ---- measure -------------------------------------------------------------------------------------

def measure():
    """(plain, grid): what `measure_point` returns for None; and {(noise, k): what it returns}."""
    # The plain run and the points with the most blocks and rows take longest, so they go first.
    points = [(noise, k) for noise in reversed(NOISES) for k in reversed(GUESSES)]
    plain, *grid = cli.parallel(measure_point, [None] + points)
    return plain, dict(zip(points, grid))


def measure_point(point):
    """One point of the grid, (noise, k): {tokens_equal, stats, cycles, draft: cycles of a draft
    step, verify: {cached rows: cycles of a block}}. For None the plain run: {tokens_equal, cycles,
    steps: the cycles of each}."""
    mdl = tiny_lm.make_model("structured")
    if point is None:
        tokens, log = tiny_lm.Chip(mdl, TOKENS).generate(START, TOKENS)
        steps = [ga2_isa.cycle_counts(entry["code"])[0] for entry in log]
        return {"tokens_equal": tokens == rule_tokens(), "cycles": sum(steps), "steps": steps}
    noise, k = point
    Wd = spec_lm.make_draft(mdl, noise, DRAFT_SEED)
    tokens, stats, log = spec_lm.SpecChip(mdl, Wd, TOKENS, k).generate(START, TOKENS)
    counted = [(entry, ga2_isa.cycle_counts(entry["code"])[0]) for entry in log]
    return {
        "tokens_equal": tokens == rule_tokens(),
        "stats": stats,
        "cycles": sum(cycles for _, cycles in counted),
        "draft": next(cycles for entry, cycles in counted if entry["kind"] == "draft"),
        "verify": {entry["c"]: cycles for entry, cycles in counted if entry["kind"] == "verify"},
    }


# ---- rows ----------------------------------------------------------------------------------------

def make_rows(plain, grid):
    """All numbers of the example, as they go into the JSON file."""
    return {
        "tokens": TOKENS,
        "tokens_equal": all(run["tokens_equal"] for run in (plain, *grid.values())),
        "plain_cycles": plain["cycles"],
        "grid": [grid_row(noise, k, grid[noise, k], plain["cycles"])
                 for noise in NOISES for k in GUESSES],
        "model": geometric_model(plain, grid),
        "serve": {
            "about": "E / (1 + k c): derived, not measured",
            "rows": [{"alpha": a, "k": k, "c": c, "speedup": round(served(a, k, c), 2)}
                     for a in ACCEPTANCES for k in SERVED_GUESSES for c in DRAFT_COSTS],
            "curves": [curve(a, CURVE_COST) for a in ACCEPTANCES],
        },
    }


def grid_row(noise, k, point, plain_cycles):
    """A point's statistics; None where there is nothing to divide."""
    proposed, accepted, blocks, emitted = (
        point["stats"][name] for name in ("proposed", "accepted", "blocks", "emitted"))
    return {
        "noise": noise,
        "k": k,
        "proposed": proposed,
        "accepted": accepted,
        "percent": round(100 * accepted / proposed) if proposed else None,
        "blocks": blocks,
        "tokens_per_block": round(emitted / blocks, 2) if blocks else None,
        "cycles": point["cycles"],
        "speedup": round(plain_cycles / point["cycles"], 2) if point["cycles"] else None,
    }


def geometric_model(plain, grid):
    """Unit costs in cycles, and the speedup they predict beside the measured one."""
    perfect = grid[0, MODEL_K]
    t_plain = plain["steps"][MODEL_CONTEXT - 1]
    t_draft = perfect["draft"]
    t_verify = perfect["verify"][MODEL_CACHE]
    rows = []
    for noise in MODEL_NOISES:
        point = grid[noise, MODEL_K]
        a = point["stats"]["accepted"] / point["stats"]["proposed"]
        block = MODEL_K * t_draft + t_verify
        rows.append({
            "noise": noise,
            "alpha": round(a, 2),
            "tokens_per_block": round(expected_tokens(a, MODEL_K), 2),
            "predicted": round(expected_tokens(a, MODEL_K) * t_plain / block, 2),
            "measured": round(plain["cycles"] / point["cycles"], 2),
        })
    return {
        "k": MODEL_K,
        "draft_step_cycles": t_draft,
        "plain_step_cycles_average": plain["cycles"] // len(plain["steps"]),
        "plain_step_cycles": {"context": MODEL_CONTEXT, "cycles": t_plain},
        "verifier_cycles": [{"cache": c, "cycles": perfect["verify"][c]} for c in SHOWN_CACHES],
        "rows": rows,
    }


def expected_tokens(a, k):
    """E: tokens a block brings when each guess is right with probability `a`."""
    total = 0.0
    for i in range(k + 1):
        total += a ** i
    return total


def served(a, k, c):
    """The derived speedup."""
    return expected_tokens(a, k) / (1 + k * c)


def curve(a, c):
    """The derived speedup against k, and the k at which it is largest."""
    speedup = [served(a, k, c) for k in CURVE_GUESSES]
    best = speedup.index(max(speedup))
    return {"alpha": a, "c": c, "k": list(CURVE_GUESSES), "best_k": CURVE_GUESSES[best],
            "speedup": [round(value, 3) for value in speedup]}


# ---- format --------------------------------------------------------------------------------------

def report(data):
    """Everything that is printed."""
    return "\n".join([
        f"1. Measured: accepted guesses and speedup, {data['tokens']} tokens of the structured "
        "model",
        f"   (plain decoding: {data['plain_cycles']:,} cycles)", "",
        format_grid(data), "",
        format_statistics(data), "",
        f"Tokens are the rule's in all {len(data['grid'])} runs and in the plain one: "
        f"{'yes' if data['tokens_equal'] else 'NO'}", "",
        "2. Unit costs, and a geometric model against the measurement", "",
        format_model(data), "",
        "3. Serving a large model: E / (1 + k c), derived, not measured", "",
        format_serving(data)]) + "\n"


def format_grid(data):
    cells = {}
    for row in data["grid"]:
        cells.setdefault(f"noise {row['noise']}", []).append(
            f"{cell(row['percent'], '{} %')} {cell(row['speedup'], '{:.2f}x')}")
    return cli.format_table(("draft", *(f"k = {k}" for k in GUESSES)),
                            [(noise, *row) for noise, row in cells.items()])


def format_statistics(data):
    header = ("noise", "k", "proposed", "accepted", "share", "blocks", "tokens/block", "cycles",
              "speedup")
    return cli.format_table(header, [
        (row["noise"], row["k"], row["proposed"], row["accepted"], cell(row["percent"], "{} %"),
         row["blocks"], cell(row["tokens_per_block"], "{:.2f}"), f"{row['cycles']:,}",
         cell(row["speedup"], "{:.2f}x")) for row in data["grid"]])


def format_model(data):
    model = data["model"]
    plain = model["plain_step_cycles"]
    costs = [("draft step", f"{model['draft_step_cycles']:,}"),
             (f"plain step, context {plain['context']}", f"{plain['cycles']:,}"),
             ("plain step, average", f"{model['plain_step_cycles_average']:,}")]
    costs += [(f"verifier, {model['k'] + 1} rows behind {entry['cache']}", f"{entry['cycles']:,}")
              for entry in model["verifier_cycles"]]
    rows = [(row["noise"], f"{row['alpha']:.2f}", f"{row['tokens_per_block']:.2f}",
             f"{row['predicted']:.2f}x", f"{row['measured']:.2f}x") for row in model["rows"]]
    return "\n".join([
        cli.format_table(("unit", "cycles"), costs), "",
        cli.format_table(("noise", "a", "E", "predicted", "measured"), rows)])


def format_serving(data):
    lines = {}
    for row in data["serve"]["rows"]:
        lines.setdefault((f"{row['alpha']:.1f}", row["k"]), []).append(f"{row['speedup']:.2f}x")
    table = cli.format_table(("a", "k", *(f"c = {c:.2f}" for c in DRAFT_COSTS)),
                             [(*key, *cells) for key, cells in lines.items()])
    best = [f"k = {curve['best_k']} at a = {curve['alpha']}" for curve in data["serve"]["curves"]]
    return f"{table}\n\nBest for c = {CURVE_COST}: {', '.join(best)}."


def cell(value, form):
    """The value in its form, "-" for None."""
    return "-" if value is None else form.format(value)


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments(argv)
    cli.progress(f"{len(NOISES) * len(GUESSES)} points of the grid and the plain run ...")
    data = make_rows(*measure())
    text = report(data)
    cli.write_json(args.out / "ch16_example_b.json", data)
    cli.write_text(args.out / "ch16_example_b_out.txt", text)
    print(text, end="")
    return 0 if data["tokens_equal"] else 1


def arguments(argv):
    parser = argparse.ArgumentParser(
        description="Running example B: measure when guessing pays, model it, derive it at scale.")
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the outputs (default out/)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
