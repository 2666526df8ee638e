"""The best k: a sweep, a two-token draft, and a k planned block by block.

    python3 tools/beyond/ch16_best_k.py [--sim icarus|verilator|both|none] [--out DIR]

1. The cycles of a block of m rows, and the speedup for k = 1 .. 15 with the chapter's programs and
   with the improved ones: the structured model (perfect draft), random model 1 (bigram, two-token).
   Beside them a formula, a being the share of the run's tokens that the draft would guess right:
       E = 1 + a + .. + a^k tokens a block
       speedup = E * t_plain / (t_verify + E * t_draft / n)
2. The two-token draft beside the bigram on the random models 1 .. 24.
3. A planned k (policy_lm: a draft trusted as far as it was right) beside the best fixed one, chosen
   afterwards: five drafts of the structured model, and the bigrams of the random models.

n = 32 tokens, one scale plan. The target's tokens and the drafts' answers come from the programs
of the chip; the blocks are then played on these tokens and their cycles counted from their
programs (hindsight_tests holds this against the chip). A block of each size is replayed on the RTL.
Writes ch16_best_k.json (all numbers), ch16_best_k.txt (what it prints) and ch16_best_k.svg (the
sweep) into the folder out/.
"""

import math
import sys

import paths
import cli
import ch16_fast_figures
import hw

import fast_lm
import pair_lm
import spec_lm
import tiny_lm
from fast_lm import unweighed
from ga2_isa import TILE, cycle_counts
from hindsight import play
from policy_lm import MOST, clipped, fixed, follow, planned, prices, trusted
from runs import DRAFT_SEED, START, TOKENS, arguments, count, rtl_line

GUESSES = range(1, MOST + 1)
NOISES = (0, 3, 4, 5, 6)
RANDOMS = range(1, 25)
CACHE = 12                                      # rows before the formula's step and block
TYPICAL_K = 3                                   # the k at which acceptance is shown
SHOWN_K = (1, 2, 3, 7, 15)                      # fixed k in the summary of part 3
SWEEPS = {                                      # title: kind of model, draft
    "structured model, perfect draft": ("structured", "bigram"),
    "random model 1, bigram": ("random", "bigram"),
    "random model 1, two-token draft": ("random", "two-token"),
}


# ---- measure -------------------------------------------------------------------------------------

def measure_costs():
    """{(c, m): cycles of the improved verifier} for every block within TOKENS tokens.

    They are those of the structured model and of most random ones. In a few, an add has one operand
    less to rescale and a block is under 1 % cheaper: parts 2 and 3 ask each model for its own.
    """
    costs = {}
    for some in cli.parallel(costs_of_rows, range(MOST + 1, 0, -1)):
        costs.update(some)
    return costs


def costs_of_rows(m):
    chip = make_chip("structured", 1, 0)
    return {(c, m): chip.cost(c, m) for c in range(TOKENS - m + 1)}


def make_chip(kind, seed, noise):
    """The improved chip with a bigram draft."""
    mdl = tiny_lm.make_model(kind, seed)
    Wd = spec_lm.make_draft(mdl, noise, DRAFT_SEED)
    return fast_lm.FastChip(mdl, Wd, TOKENS, TYPICAL_K)


def measure_blocks():
    """Log entries of a block of 1 to MOST + 1 rows behind CACHE rows."""
    chip = make_chip("structured", 1, 0)
    run = tiny_lm.float_generate(chip.m, START, CACHE + MOST)
    _, kc, vc = spec_lm.float_block(chip.m, run[:CACHE], [], [])
    for m in range(1, MOST + 2):
        chip.verify(CACHE, run[CACHE:CACHE + m], kc, vc)
    return chip.log


def measure_sweep(job):
    """Part 1 for one target, ((kind, draft), costs): (its `measure_draft`, the chapter's cycles and
    blocks by k)."""
    (kind, draft), costs = job
    chip = make_chip(kind, 1, 0)
    chapter = fast_lm.FastChip(chip.m, chip.Wd, TOKENS, 1, share=chip, batched=False)
    guess = cycle_counts(chip.dprog.code)[0]
    tokens, _ = chip.plain(START, TOKENS + MOST)
    if draft == "two-token":
        chip = pair_lm.PairChip(chip.m, TOKENS, 1, share=chip)
    before = []
    for k in GUESSES:
        stats, cycles = play(tokens, TOKENS, unweighed(TOKENS, fixed(k), chip.drafts()),
                             chapter.cost)
        before.append((cycles + guess * stats["proposed"], stats["blocks"]))
    return measure_draft(chip, tokens, lambda c, m: costs[c, m]), before


def measure_target(job):
    """Parts 2 and 3 for a target and its bigram, (name, kind, seed, noise): a dict."""
    name, kind, seed, noise = job
    chip = make_chip(kind, seed, noise)
    cost = prices(chip.cost)
    tokens, _ = chip.plain(START, TOKENS)
    result = {"name": name, "plain": sum(cost(c, 1) for c in range(TOKENS)),
              "bigram": measure_draft(chip, tokens, cost)}
    if kind == "random":
        pair = pair_lm.PairChip(chip.m, TOKENS, 1, share=chip)
        result["two-token"] = measure_draft(pair, tokens, cost)
    result["planned"] = measure_policy(chip, tokens, lambda draft_after: follow(
        TOKENS, planned(TOKENS, cost),
        trusted(lambda so_far: draft_after(so_far)(so_far[-1]), 1)), cost)
    return result


def measure_draft(chip, tokens, cost):
    """{right: tokens the draft would guess right, ks: a `measure_policy` for each k}."""
    draft_after = chip.drafts()
    right = sum(draft_after(tokens[:i + 1])(tokens[i]) == tokens[i + 1] for i in range(TOKENS))
    ks = []
    for k in GUESSES:
        clip = clipped(k)
        ks.append(measure_policy(chip, tokens, lambda draft: unweighed(TOKENS, clip, draft), cost))
        ks[-1]["k"] = k
    return {"right": right, "ks": ks}


def measure_policy(chip, tokens, next_block, cost):
    """{stats, verify: cycles of the blocks, draft: cycles of the draft's programs} of a run.

    next_block(draft_after) -> the next_block of the run.
    """
    chip.log = []
    stats, cycles = play(tokens, TOKENS, next_block(chip.drafts()), cost)
    return {"stats": stats, "verify": cycles, "draft": spec_lm.cycles_of(chip.log)}


# ---- rows ----------------------------------------------------------------------------------------

def block_rows(costs):
    """Part 1: a dict per m: cycles of a block, what its last row adds, and what a row costs."""
    rows = []
    for m in range(1, MOST + 2):
        cycles = costs[CACHE, m]
        rows.append({"m": m, "cycles": cycles, "last_row": cycles - costs.get((CACHE, m - 1), 0),
                     "per_row": round(cycles / m),
                     "of_a_step": round(cycles / m / costs[CACHE, 1], 2)})
    return rows


def sweep_rows(measured, before, costs, plain):
    """Part 1 for one target, a dict per k."""
    rows = []
    for one, (chapter_cycles, chapter_blocks) in zip(measured["ks"], before):
        k, stats = one["k"], one["stats"]
        cycles = one["verify"] + one["draft"]
        tokens = math.fsum((measured["right"] / TOKENS) ** i for i in range(k + 1))
        block = costs[CACHE, k + 1] + tokens * one["draft"] / TOKENS
        rows.append({
            "k": k,
            "accepted": stats["accepted"],
            "proposed": stats["proposed"],
            "blocks": stats["blocks"],
            "cycles": cycles,
            "fast": round(plain / cycles, 2),
            "formula": round(tokens * costs[CACHE, 1] / block, 2),
            "chapter_blocks": chapter_blocks,
            "chapter_cycles": chapter_cycles,
            "chapter": round(plain / chapter_cycles, 2),
        })
    return rows


def target_row(result):
    """Parts 2 and 3 for one target."""
    plain = result["plain"]
    cycles = [total(one) for one in result["bigram"]["ks"]]
    row = {"name": result["name"]}
    for draft in ("bigram", "two-token"):
        if draft in result:
            row[draft] = draft_entry(result[draft], plain)
    row["fixed"] = [{"k": k, "speedup": round(plain / cycles[k - 1], 2),
                     "over_best": cycles[k - 1] / min(cycles)} for k in GUESSES]
    chosen = total(result["planned"])
    row["planned"] = {"speedup": round(plain / chosen, 2),
                       "blocks": result["planned"]["stats"]["blocks"],
                       "over_best": chosen / min(cycles)}
    return row


def total(measured):
    """Cycles of a run, the draft's included."""
    return measured["verify"] + measured["draft"]


def draft_entry(measured, plain):
    """A draft's acceptance and best k; speedup: its answers from the chip, host: from a table."""
    best = min(measured["ks"], key=total)
    typical = measured["ks"][TYPICAL_K - 1]["stats"]
    return {"right": measured["right"],
            "accepted": typical["accepted"],
            "proposed": typical["proposed"],
            "best_k": best["k"],
            "speedup": round(plain / total(best), 2),
            "host": round(plain / min(one["verify"] for one in measured["ks"]), 2)}


def summary_rows(rows):
    """Part 3 in short: each policy's cycles over those of the best fixed k, geometric means."""
    groups = {"five drafts": rows[:len(NOISES)], "random models": rows[len(NOISES):], "all": rows}
    summary = []
    for k in (*GUESSES, None):
        line = {"policy": f"k = {k}" if k else "planned"}
        for name, group in groups.items():
            logs = [math.log((row["fixed"][k - 1] if k else row["planned"])["over_best"])
                    for row in group]
            line[name] = round(math.exp(math.fsum(logs) / len(logs)), 3)
        summary.append(line)
    return summary


# ---- format --------------------------------------------------------------------------------------

def format_text(data):
    """What is printed."""
    parts = [f"1. A block of m rows behind {CACHE}, in cycles", block_table(data["blocks"]),
             tile_line(data["blocks"])]
    for title, points in data["sweeps"].items():
        parts += [f"   {title}: a = {data['right'][title] / TOKENS:.2f}", sweep_table(points),
                  best_line(points)]
    randoms = [row for row in data["targets"] if "two-token" in row]
    parts += [f"2. The bigram, and (2) the two-token draft: guesses right of {TOKENS}, accepted at "
              f"k = {TYPICAL_K}, best k", pair_table(randoms), pair_line(randoms),
              "3. A planned k: speedups with bigram drafts", planned_table(data["targets"]),
              "   Cycles over those of each draft's best fixed k (geometric means)",
              summary_table(data["summary"]), data["rtl"]]
    return "\n\n".join(parts) + "\n"


def block_table(rows):
    return cli.format_table(("m", "block", "last row", "per row", "of a plain step"),
                            [(row["m"], f"{row['cycles']:,}", f"{row['last_row']:,}",
                              f"{row['per_row']:,}", f"{row['of_a_step']:.2f}") for row in rows])


def tile_line(rows):
    """Where the teeth come from."""
    opening = [row for row in rows[1:] if row["m"] % TILE == 1]
    filling = [row["last_row"] for row in rows[1:] if row["m"] % TILE != 1]
    return (f"   Rows {', '.join(str(row['m']) for row in opening)} open a row tile and cost "
            f"{', '.join('{:,}'.format(row['last_row']) for row in opening)} cycles; a row that "
            f"fills one costs {min(filling):,} to {max(filling):,}.")


def sweep_table(points):
    return cli.format_table(
        ("k", "accepted", "blocks", "cycles", "speedup", "formula", "chapter's blocks", "speedup"),
        [(row["k"], f"{row['accepted']} of {row['proposed']}", row["blocks"],
          f"{row['cycles']:,}", f"{row['fast']:.2f}x", f"{row['formula']:.2f}x",
          row["chapter_blocks"], f"{row['chapter']:.2f}x") for row in points])


def best_line(points):
    words = {"fast": "measured", "formula": "by the formula", "chapter": "the chapter's programs"}
    best = {key: max(points, key=lambda row: row[key]) for key in words}
    return "   Best: " + ", ".join(f"{words[key]} {row[key]:.2f}x at k = {row['k']}"
                                   for key, row in best.items())


def pair_table(rows):
    lines = []
    for row in rows:
        line = [row["name"]]
        for draft in ("bigram", "two-token"):
            one = row[draft]
            line += [one["right"], f"{one['accepted']} of {one['proposed']}", one["best_k"],
                     f"{one['speedup']:.2f}x", f"{one['host']:.2f}x"]
        lines.append(line)
    names = ("right", "accepted", "best k", "speedup", "host table")
    return cli.format_table(("target", *names, *(f"2: {name}" for name in names)), lines)


def pair_line(rows):
    """For how many targets which draft is better."""
    def compare(key):
        ahead = [row["two-token"][key] - row["bigram"][key] for row in rows]
        return (f"better on {sum(one > 0 for one in ahead)}, "
                f"worse on {sum(one < 0 for one in ahead)}")

    return (f"   Two-token against bigram, {len(rows)} targets.\n"
            f"   Guesses right: {compare('right')}.\n"
            f"   Speedup with answers from the chip: {compare('speedup')};\n"
            f"   with answers from tables of the host: {compare('host')}.")


def planned_table(rows):
    return cli.format_table(
        ("draft", "best k", "its speedup", f"k = {TYPICAL_K}", "planned", "blocks",
         "cycles over the best"),
        [(row["name"], row["bigram"]["best_k"], f"{row['bigram']['speedup']:.2f}x",
          f"{row['fixed'][TYPICAL_K - 1]['speedup']:.2f}x", f"{row['planned']['speedup']:.2f}x",
          row["planned"]["blocks"], f"{100 * (row['planned']['over_best'] - 1):+.1f} %")
         for row in rows])


def summary_table(lines):
    shown = [f"k = {k}" for k in SHOWN_K] + ["planned"]
    names = [name for name in lines[0] if name != "policy"]
    return cli.format_table(["policy"] + names,
                            [[line["policy"]] + [f"{line[name]:.3f}" for name in names]
                             for line in lines if line["policy"] in shown])


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments("Look for the best k.", argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    cli.progress("counting the cycles of all blocks ...")
    costs = measure_costs()
    plain = sum(costs[c, 1] for c in range(TOKENS))
    cli.progress("playing ...")
    jobs = [(f"noise {noise}", "structured", 1, noise) for noise in NOISES]
    jobs += [(f"random {seed}", "random", seed, 0) for seed in RANDOMS]
    swept = cli.parallel(measure_sweep, [(target, costs) for target in SWEEPS.values()])
    targets = [target_row(result) for result in cli.parallel(measure_target, jobs)]
    cli.progress("replaying a block of each size on the RTL ...")
    blocks = measure_blocks()
    count(blocks, sims)
    data = {
        "plain_cycles": plain,
        "blocks": block_rows(costs),
        "right": {title: measured["right"] for title, (measured, _) in zip(SWEEPS, swept)},
        "sweeps": {title: sweep_rows(measured, before, costs, plain)
                   for title, (measured, before) in zip(SWEEPS, swept)},
        "targets": targets,
        "summary": summary_rows(targets),
        "rtl": rtl_line(sims, len(blocks), not_checked),
    }
    text = format_text(data)
    cli.write_json(args.out / "ch16_best_k.json", data)
    cli.write_text(args.out / "ch16_best_k.txt", text)
    cli.write_text(args.out / "ch16_best_k.svg",
                   ch16_fast_figures.sweeps(data["sweeps"]).render())
    print(text, end="")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(cli.run(main))
