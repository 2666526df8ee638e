"""Drafts that cost nothing, and how far from hindsight: every policy as a share of the best.

    python3 tools/beyond/ch16_policy.py [--sim icarus|verilator|both|none] [--out DIR]

Random models 1 to 24, 32 tokens, one scale plan, drafts on the host: no draft model (lookup), the
chapter's bigram, tables that go on counting. For each the fixed k, the best fixed k chosen
afterwards, the planned k, and hindsight: the cheapest blocks that any policy could have made. All
numbers are geometric means over the models. The first table is the run from token 0. The second is
the starts on which the drafts' constants were chosen, on the same models and with the first table's
run in sight. The third is the fresh sample: random models 25 to 48, on which nothing was chosen.
The winners' runs from token 0 are made on the chip's simulator as well, and those on random model 1
are replayed on the RTL.

Writes ch16_policy.json (all numbers), ch16_policy.txt (what it prints) and ch16_policy.svg into the
folder out/.
"""

import math
import sys

import paths
import cli
import hw
import policy_runs
import svg
from policy_runs import OTHER_STARTS, REPLAYED, SHOWN_K, WINNERS
from runs import START, TOKENS, arguments, count, rtl_line

TARGETS = [f"random {seed}" for seed in range(1, 25)]
FRESH = [f"random {seed}" for seed in range(25, 49)]
POLICIES = (*(f"k = {k}" for k in SHOWN_K), "best k afterwards", "planned")


# ---- rows ----------------------------------------------------------------------------------------

def mean_rows(results, starts):
    """A dict per draft: geometric means over targets and `starts`; shares are of hindsight."""
    rows = []
    for draft in results[0][START]:
        cycles = [result[start][draft] for result in results for start in starts]
        row = {"draft": draft, "runs": len(cycles)}
        for policy in (*POLICIES, "hindsight", "limit"):
            row[policy] = {
                "speedup": mean([one["plain"] / one[policy] for one in cycles], 3),
                "share": mean([one["hindsight"] / one[policy] for one in cycles], 3),
            }
        rows.append(row)
    return rows


def mean(values, digits):
    """The geometric mean."""
    return round(math.exp(math.fsum(math.log(value) for value in values) / len(values)), digits)


def target_rows(results):
    """A dict per target: what the winners and hindsight come to, from START."""
    rows = []
    for target, result in zip(TARGETS, results):
        row = {"target": target}
        for draft in WINNERS:
            cycles = result[START][draft]
            row[draft] = {policy: round(cycles["plain"] / cycles[policy], 2)
                          for policy in ("planned", "hindsight", "limit")}
        rows.append(row)
    return rows


def winner_rows(results, winners):
    """A dict per winner, its runs on the chip's simulator counted; winners: by (target, draft).

    Raises AssertionError where a run takes other cycles than were played.
    """
    rows = []
    for draft in WINNERS:
        runs = [winners[target, draft] for target in TARGETS]
        played = [result[START][draft]["planned"] for result in results]
        if [cycles for _, cycles, _ in runs] != played:
            raise AssertionError(f"{draft}: played as {played} cycles, on the chip the runs take "
                                 f"{[cycles for _, cycles, _ in runs]}")
        plain = results[TARGETS.index(REPLAYED)][START][draft]["plain"]
        _, cycles, _ = winners[REPLAYED, draft]
        rows.append({"draft": draft, "runs": len(runs), "equal": sum(equal for equal, *_ in runs),
                     "cycles": cycles, "speedup": round(plain / cycles, 2)})
    return rows


# ---- format --------------------------------------------------------------------------------------

def format_text(data):
    """What is printed."""
    return "\n\n".join([
        f"1. {TOKENS} tokens from token {START}: speedup, and (its share of hindsight)",
        mean_table(data["means"]),
        "2. The same from tokens {} and {}, where the drafts' constants were chosen".format(
            ", ".join(map(str, OTHER_STARTS[:-1])), OTHER_STARTS[-1]),
        mean_table(data["others"]),
        f"3. Fresh models, {FRESH[0]} to {FRESH[-1]}, from all six tokens",
        mean_table(data["fresh"]),
        "   Limit: hindsight with the weights loaded once a block, its rows multiplied by them, "
        "nothing else",
        "4. Target by target, from token 0",
        target_table(data["targets"]),
        "\n".join([
            "5. The planned runs from token 0 on the chip's simulator: the cycles that were played",
            *(f"   {row['draft']}: tokens equal to plain decoding's in {row['equal']} of "
              f"{row['runs']} runs; {REPLAYED}: {row['cycles']:,} cycles, {row['speedup']:.2f}x"
              for row in data["winners"])]),
        data["rtl"],
    ]) + "\n"


def mean_table(rows):
    def cell(one):
        return f"{one['speedup']:.2f}x ({100 * one['share']:.0f} %)"

    return cli.format_table(
        ("draft", *POLICIES, "hindsight", "limit"),
        [(row["draft"], *(cell(row[policy]) for policy in POLICIES),
          f"{row['hindsight']['speedup']:.2f}x", f"{row['limit']['speedup']:.2f}x")
         for row in rows])


def target_table(rows):
    return cli.format_table(
        ("target", *(f"{draft}: {policy}" for draft in WINNERS
                     for policy in ("planned", "hindsight", "limit"))),
        [(row["target"], *(f"{value:.2f}x" for draft in WINNERS for value in row[draft].values()))
         for row in rows])


# ---- the picture ---------------------------------------------------------------------------------

LEFT, RIGHT, TOP, STEP, SMALL = 230, 790, 92, 46, 12
MARKS = (                                       # policy, words, colour, marker
    ("k = 3", "k = 3", svg.ORANGE, "square"),
    ("best k afterwards", "best k, chosen afterwards", svg.GREY, "diamond"),
    ("planned", "planned", svg.BLUE, "circle"),
)


def picture(rows):
    """Speedups by policy, a bar up to hindsight behind them, a line at the limit."""
    bottom = TOP + STEP * len(rows)
    words = "; ".join(f"{row['draft']}: planned {row['planned']['speedup']:.2f}, hindsight "
                      f"{row['hindsight']['speedup']:.2f}" for row in rows)
    drawn = svg.Picture("ch16_policy", 830, bottom + 54, "Policies against hindsight", words)
    drawn.text(20, 32, f"Policies against hindsight: {TOKENS} tokens, geometric means over "
                       f"{len(TARGETS)} random models", size=15, bold=True)
    at = 20
    for _, name, colour, marker in MARKS:
        drawn.marker(marker, at + 6, 54, fill=colour)
        drawn.text(at + 18, 58, name, size=SMALL)
        at += 42 + 7 * len(name)
    drawn.rect(at, 48, 14, 12, fill=svg.LIGHT)
    drawn.text(at + 20, 58, "up to hindsight", size=SMALL)
    drawn.line(at + 136, 46, at + 136, 62, stroke=svg.VERMILION, stroke_width=2.5)
    drawn.text(at + 144, 58, "limit", size=SMALL)
    x = svg.Scale(1, svg.round_up(max(row["limit"]["speedup"] for row in rows), 0.5), LEFT, RIGHT)
    for tick in x.ticks(0.5):
        drawn.line(x(tick), TOP - 10, x(tick), bottom, stroke=svg.LIGHT)
        drawn.text(x(tick), bottom + 18, f"{tick:.1f}x", size=SMALL, anchor="middle", fill=svg.GREY)
    for number, row in enumerate(rows):
        y = TOP + STEP * number + STEP // 2 - 8
        drawn.text(LEFT - 12, y + 4, row["draft"], size=SMALL, anchor="end")
        drawn.rect(x(1), y - 8, x(row["hindsight"]["speedup"]) - x(1), 16, fill=svg.LIGHT)
        drawn.line(x(row["limit"]["speedup"]), y - 12, x(row["limit"]["speedup"]), y + 12,
                   stroke=svg.VERMILION, stroke_width=2.5)
        for policy, _, colour, marker in MARKS:
            drawn.marker(marker, x(row[policy]["speedup"]), y, fill=colour)
        drawn.text(x(row["planned"]["speedup"]), y + 23, f"{row['planned']['speedup']:.2f}x",
                   size=SMALL, anchor="middle", bold=True)
        drawn.text(x(row["hindsight"]["speedup"]) + 6, y + 4,
                   f"{row['hindsight']['speedup']:.2f}x", size=SMALL, fill=svg.GREY)
    drawn.text((LEFT + RIGHT) / 2, bottom + 40, "speedup over plain decoding", size=SMALL,
               anchor="middle")
    return drawn


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments("Measure every policy against hindsight.", argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    cli.progress("playing ...")
    results = cli.parallel(policy_runs.measure_target, TARGETS + FRESH)
    results, fresh = results[:len(TARGETS)], results[len(TARGETS):]
    jobs = [(target, draft) for target in TARGETS for draft in WINNERS]
    winners = dict(zip(jobs, cli.parallel(policy_runs.run_winner, jobs)))
    cli.progress("replaying the winners on the RTL ...")
    log = [entry for _, _, log in winners.values() for entry in log]
    count(log, sims)
    data = {
        "plain_cycles": [result[START][WINNERS[0]]["plain"] for result in results],
        "means": mean_rows(results, [START]),
        "others": mean_rows(results, OTHER_STARTS),
        "fresh": mean_rows(fresh, [START, *OTHER_STARTS]),
        "targets": target_rows(results),
        "winners": winner_rows(results, winners),
        "rtl": rtl_line(sims, len(log), not_checked),
    }
    text = format_text(data)
    cli.write_json(args.out / "ch16_policy.json", data)
    cli.write_text(args.out / "ch16_policy.txt", text)
    cli.write_text(args.out / "ch16_policy.svg", picture(data["means"]).render())
    print(text, end="")
    well = all(row["equal"] == row["runs"] for row in data["winners"])
    return 0 if well and complete else 1


if __name__ == "__main__":
    sys.exit(cli.run(main))
