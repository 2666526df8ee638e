"""Are the speculative chip's tokens the chip's own? Scales per shape, and one plan for all shapes.

    python3 tools/beyond/ch16_exact.py [--quick] [--sim icarus|verilator|both|none] [--out DIR]

The chapter's scheme calibrates every program shape on its own (spec_lm.SpecChip, tiny_lm.Chip); the
remedy gives all shapes one plan (exact_lm.ExactChip). Both decode the same runs.

1. grid    32 targets, all 16 starts, ten pairs of a draft and k, 20 tokens. Tokens are compared
           with the scheme's own plain tokens; under one plan, so are the logits of every token.
2. slice   Random targets 1 to 24, starts 0, 5, 9, k = 1 and 3, draft noise 0, 32 tokens.
3. float   How far the tokens of the grid are those of floating point.
4. cost    Cycles of those runs of the grid in which both schemes made the same calls.
5. tags    One plan but for one tag, whose tensor has each shape's own range.
6. proof   All blocks of up to 8 rows, on symbols: the same integers for every input (exact_proof).
7. RTL     Some runs of the slice replayed on the Verilog, every program of both schemes.

Writes ch16_exact.json and ch16_exact.txt (what it prints) into out/.  --quick takes a share of each
part, drawn with a fixed seed, and writes ch16_exact_quick.json and .txt.
"""

import paths

import argparse
import random
import sys
from collections import namedtuple
from pathlib import Path

import cli
import hw

import exact_proof
import exact_runs
import spec_lm
import tiny_lm
from exact_lm import ExactChip
from runs import IMAGE_WORDS, make_draft, make_target, record

QUICK_SEED = 1
# All runs of `targets` by `pairs` (a draft and k) by `starts`, n tokens each.
Part = namedtuple("Part", "targets pairs starts n")
RANDOM = tuple(f"random {seed}" for seed in range(1, 31))
GRID = Part(RANDOM + ("structured", "sharp"),
            tuple([("noise 0", k) for k in (1, 2, 3, 4, 5, 7)]
                  + [("noise 3", k) for k in (1, 3, 5)] + [("worst", 1)]),
            tuple(range(tiny_lm.V)), 20)
SLICE = Part(RANDOM[:24], (("noise 0", 1), ("noise 0", 3)), (0, 5, 9), 32)
TAGS = Part(RANDOM[:6], (("noise 0", 3),), (0, 5), 20)
PROVED = ("random 1", "random 4", "structured", "sharp")
EXAMPLE = ("random 4", 9, 1)                    # target, start, k of a run to replay: equal tokens
REPLAYED = 2                                    # runs on the Verilog; the other's tokens differ
MEASURES = {"grid": exact_runs.measure_runs, "slice": exact_runs.measure_runs,
            "tags": exact_runs.measure_tags, "proof": exact_runs.measure_proof}


# ---- measure -------------------------------------------------------------------------------------

def measure(item):
    """What a worker does: one target of a part, or one proof."""
    name, target, part = item
    return MEASURES[name](target, part)


def quick_parts():
    """A share of each part, in its place."""
    R = random.Random(QUICK_SEED)

    def some(part, targets, pairs, starts):
        return Part(*(tuple(sorted(R.sample(all_, count), key=all_.index))
                      for all_, count in zip(part, (targets, pairs, starts))), part.n)

    return {"grid": some(GRID, 4, 3, 4), "slice": some(SLICE, 3, 2, 3), "tags": some(TAGS, 1, 1, 2),
            "proof": sorted(R.sample(exact_proof.SHAPES, 40))}


def measure_all(quick):
    """({part name: what it ran}, {part name: results by target})."""
    parts = {"grid": GRID, "slice": SLICE, "tags": TAGS, "proof": exact_proof.SHAPES}
    if quick:
        parts = quick_parts()
    items = [(name, target, part) for name, part in parts.items()
             for target in (part.targets if name != "proof" else PROVED[:1 if quick else None])]
    results = {name: {} for name in parts}
    for (name, target, _), result in zip(items, cli.parallel(measure, items)):
        results[name][target] = result
    return parts, results


# ---- the Verilog ---------------------------------------------------------------------------------

def replayed_runs(results, count):
    """`count` rows of the slice: EXAMPLE, then runs that differ under scales per shape,
    of as many targets, k = 1 and 3 in turn."""
    rows = [row for some in results.values() for row in some]
    chosen = [row for row in rows if (row["target"], row["start"], row["k"]) == EXAMPLE]
    for row in rows:
        known = [one["target"] for one in chosen]
        if len(chosen) < count and row["per_shape"] and row["target"] not in known \
                and row["k"] == SLICE.pairs[len(chosen) % 2][1]:
            chosen.append(row)
    return chosen


def programs_of(row):
    """Records of every program that a run and its plain run execute, under both schemes."""
    mdl = make_target(row["target"])
    Wd = make_draft(mdl, row["draft"])
    exact = ExactChip(mdl, Wd, SLICE.n, row["k"])
    log = []
    log += tiny_lm.Chip(mdl, SLICE.n).generate(row["start"], SLICE.n)[1]
    log += exact.plain(row["start"], SLICE.n)[1]
    for chip in (spec_lm.SpecChip(mdl, Wd, SLICE.n, row["k"]), exact):
        log += chip.generate(row["start"], SLICE.n)[2]
    return [record(entry) for entry in log]


def replay(runs, sims):
    """{programs, cycles, runs}: the runs on the Verilog, each different program once.

    Raises UserError with the simulator's words where a word or a counter is not the model's.
    """
    records = sorted({tuple(record) for some in cli.parallel(programs_of, runs)
                      for record in some})
    for counters in hw.counters(records, sims, ext=IMAGE_WORDS).values():
        cycles = sum(total for total, *_ in counters)
    return {"programs": len(records), "cycles": cycles,
            "runs": [{key: row[key] for key in ("target", "start", "k", "per_shape")}
                     for row in runs]}


# ---- rows ----------------------------------------------------------------------------------------

def summary(rows):
    """Counts over some runs."""
    return {"runs": len(rows),
            "per_shape_equal": sum(row["per_shape"] is None for row in rows),
            "per_shape_unmet": sum(row["unmet"] for row in rows),
            "one_plan_equal": sum(row["one_plan"] is None for row in rows),
            "one_plan_logits_equal": sum(row["logits_equal"] for row in rows)}


def by(rows, *keys):
    """A summary for each value of `keys`, in the order they come."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return [{**dict(zip(keys, values)), **summary(some)} for values, some in groups.items()]


def differing_row(row):
    """Where a run with scales per shape leaves its plain run."""
    position, token, own = row["per_shape"]
    return {"target": row["target"], "start": row["start"], "k": row["k"], "position": position,
            "speculative": token, "plain": own}


def float_rows(rows, n):
    """Shares, in percent: runs all of whose tokens are floating point's; tokens before the first
    that is not."""
    found = []
    for i, name in enumerate(("per shape, plain", "per shape, speculative", "one plan, both")):
        counts = [row["float"][i] for row in rows]
        found.append({"scales": name,
                      "runs_equal": round(100 * counts.count(n) / len(rows), 1),
                      "tokens_before": round(100 * sum(counts) / (n * len(rows)), 1)})
    return found


def cost_row(rows):
    """Cycles of runs with the same calls, and how many percent more one plan takes."""
    pairs = [row["cycles"] for row in rows if row["cycles"]]
    more = [100 * (one - shapes) / shapes for shapes, one in pairs]
    return {"runs": len(pairs), "equal": more.count(0),
            "per_shape_cycles": sum(shapes for shapes, _ in pairs),
            "one_plan_cycles": sum(one for _, one in pairs),
            "least_percent": round(min(more), 2), "most_percent": round(max(more), 2)}


def make_rows(parts, results):
    """Everything that is printed and recorded, but for the RTL."""
    grid = [row for rows in results["grid"].values() for row in rows]
    slice_ = [row for rows in results["slice"].values() for row in rows]
    tags = [{"left_out": tag,
             **dict(zip(("runs", "tokens_equal", "logits_equal"),
                        (sum(column) for column in zip(*(counts[tag] for counts in
                                                         results["tags"].values())))))}
            for tag in next(iter(results["tags"].values()))]
    return {
        "grid": {"tokens": parts["grid"].n, "total": summary(grid),
                 "by_draft": by(grid, "draft", "k"), "by_target": by(grid, "target")},
        "slice": {"tokens": parts["slice"].n, "total": summary(slice_), "by_k": by(slice_, "k"),
                  "differing": [differing_row(row) for row in slice_ if row["per_shape"]]},
        "float": float_rows(grid, parts["grid"].n),
        "cost": cost_row(grid),
        "tags": tags,
        "proof": [{"target": target, "blocks": blocks, "faults": faults}
                  for target, (blocks, faults) in results["proof"].items()],
    }


# ---- format --------------------------------------------------------------------------------------

def share(count, runs):
    return f"{100 * count / runs:.1f} %"


def summary_cells(row):
    """The cells of a summary."""
    runs = row["runs"]
    return [runs, row["per_shape_equal"], share(row["per_shape_equal"], runs),
            row["per_shape_unmet"], row["one_plan_equal"], row["one_plan_logits_equal"]]


SUMMARY = ("runs", "scales per shape", "share", "met a new shape", "one plan", "and its logits")


def format_grid(grid):
    rows = [(row["draft"], row["k"], *summary_cells(row)) for row in grid["by_draft"]]
    rows.append(("all", "", *summary_cells(grid["total"])))
    shares = [(row["per_shape_equal"] / row["runs"], row["target"]) for row in grid["by_target"]]
    (least, worst), (most, best) = min(shares), max(shares)
    return [f"1. Runs of {grid['tokens']} tokens that equal the scheme's own plain run",
            cli.format_table(("draft", "k", *SUMMARY), rows),
            f"Scales per shape, by target: from {100 * least:.1f} % ({worst}) to "
            f"{100 * most:.1f} % ({best})."]


def format_slice(part):
    rows = [(row["k"], *summary_cells(row)) for row in part["by_k"]]
    rows.append(("all", *summary_cells(part["total"])))
    lines = [f"2. The slice: {part['tokens']} tokens, draft noise 0",
             cli.format_table(("k", *SUMMARY), rows)]
    if part["differing"]:
        header = ("target", "start", "k", "position", "speculative", "plain")
        lines += ["Scales per shape, the first token that is not the plain one:",
                  cli.format_table(header, [[row[key] for key in header]
                                            for row in part["differing"]])]
    return lines


def format_float(rows):
    header = ("scales", "runs equal", "tokens before the first that differs")
    return ["3. The grid's tokens against floating point",
            cli.format_table(header, [(row["scales"], f"{row['runs_equal']} %",
                                       f"{row['tokens_before']} %") for row in rows])]


def format_cost(row):
    return ["4. Cycles where both schemes made the same calls",
            f"{row['runs']} runs: {row['per_shape_cycles']:,} with scales per shape, "
            f"{row['one_plan_cycles']:,} with one plan.",
            f"Equal in {row['equal']}; one plan takes from {row['least_percent']:+} % to "
            f"{row['most_percent']:+} %: an add requantizes",
            "an operand whose scale is not the sum's, and calibration decides whether it is."]


def format_tags(rows):
    header = ("left out of the plan", "runs", "tokens equal", "logits equal")
    return [f"5. One tag left out (plans from starts {' and '.join(map(str, TAGS.starts))} only)",
            cli.format_table(header, [(row["left_out"] or "none", row["runs"], row["tokens_equal"],
                                       row["logits_equal"]) for row in rows])]


def format_proof(rows):
    header = ("target", "blocks", "faults")
    return ["6. Blocks proved to compute the plain steps' integers for every input",
            cli.format_table(header, [(row["target"], row["blocks"], len(row["faults"]))
                                      for row in rows])]


def format_rtl(row, not_checked):
    lines = ["7. The Verilog"]
    if row["simulators"]:
        lines += [f"{row['programs']} programs, {row['cycles']:,} cycles, replayed in "
                  f"{' and '.join(row['simulators'])}: every word of external memory",
                  "and all five counters are the model's. Runs and their plain runs, both schemes:"]
        lines += [f"  {run['target']}, start {run['start']}, k = {run['k']} (scales per shape: "
                  f"{'different' if run['per_shape'] else 'equal'} tokens)" for run in row["runs"]]
    if not_checked:
        lines.append(f"NOT checked on all simulators: {not_checked}.")
    return lines


def format_all(rows, not_checked):
    parts = [format_grid(rows["grid"]), format_slice(rows["slice"]), format_float(rows["float"]),
             format_cost(rows["cost"]), format_tags(rows["tags"]), format_proof(rows["proof"]),
             format_rtl(rows["rtl"], not_checked)]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


# ---- write ---------------------------------------------------------------------------------------

def main(argv=None):
    args = arguments(argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    cli.progress("decoding under both schemes ...")
    parts, results = measure_all(args.quick)
    rows = make_rows(parts, results)
    rows["rtl"] = {"simulators": list(sims), "programs": 0, "cycles": 0, "runs": []}
    if sims:
        runs = replayed_runs(results["slice"], 1 if args.quick else REPLAYED)
        cli.progress("replaying on the RTL ...")
        rows["rtl"].update(replay(runs, sims))

    text = format_all(rows, not_checked)
    name = "ch16_exact_quick" if args.quick else "ch16_exact"
    cli.write_json(args.out / f"{name}.json", rows)
    cli.write_text(args.out / f"{name}.txt", text)
    print(text, end="")
    return 0 if all_exact(rows) and complete else 1


def all_exact(rows):
    """Whether one plan made every run and every logit the plain one's, and every proof held."""
    totals = [rows[part]["total"] for part in ("grid", "slice")]
    return (all(total["one_plan_equal"] == total["one_plan_logits_equal"] == total["runs"]
                for total in totals)
            and not any(row["faults"] for row in rows["proof"]))


def arguments(argv):
    parser = argparse.ArgumentParser(
        description="Compare scales per shape with one plan for all shapes.")
    parser.add_argument("--quick", action="store_true",
                        help="a share of each part, in a minute or two")
    hw.add_option(parser)
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the outputs (default out/)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
