"""Sampling on the chip: exact for every seed, or exact in law; what each costs.

    python3 tools/beyond/ch16_sample.py [--sim icarus|verilator|both|none] [--out DIR]

1. seeds   With rule "seeded": runs whose tokens and weights equal plain sampling's of that seed.
2. laws    Both rules on random model 1: all outcomes of runs of 3 tokens enumerated, as fractions.
3. table   Guesses kept, tokens a block and speedup over plain sampling, by temperature, k, rule and
           draft; geometric mean over the random models, and the structured one.
4. focus   Random model 1, T = 0.15, k = 3, all 16 starts; the greedy table as a poorer draft.
5. limit   The temperature below which the largest logit saturates the softmax.
6. RTL     A run of each rule, and its plain run, replayed on the Verilog.

The drafts are fitted to runs of other seeds than are measured. Writes ch16_sample.json,
ch16_sample.txt (what it prints) and ch16_sample.svg (part 3) into out/.
"""

import paths

import math
import sys
from itertools import product

import cli
import hw
import sample_lm
import spec_lm
import svg
import tiny_lm
from fast_lm import FastChip
from runs import DRAFT_SEED, START, TOKENS, arguments, count, make_target, rtl_line
from sample_law import law, plain_law, variation
from sample_lm import SampleChip, fit_draft

TARGETS = (*(f"random {seed}" for seed in range(1, 9)), "structured")
TEMPERATURES = (0.3, 0.15, 0.08)
GUESSES = (1, 3, 7)
FORMS = {                                       # name: (rule, guess the likeliest token)
    "seeded": ("seeded", False),
    "seeded, likeliest": ("seeded", True),
    "rejection": ("rejection", False),
    "rejection, likeliest": ("rejection", True),
}
SEED = 1
TABLE_STARTS = (0, 8)
EQUAL = {"tokens": 6, "k": (1, 2, 3, 5), "starts": (0, 5, 10, 15), "seeds": (2, 3)}
LAW_TOKENS = 3
# Rule, k, drafts, and (start, temperature). A block of a run of 3 tokens guesses at most 2.
LAWS = (("rejection", (1, 2), ("fitted", "hostile", "with zeros", "the target's"),
         ((0, 0.3), (5, 0.15), (9, 0.08))),
        ("rejection", (3,), ("fitted",), ((0, 0.3), (5, 0.15), (9, 0.08))),
        ("seeded", (1, 2), ("fitted", "hostile"), ((5, 0.15), (9, 0.08))))
FOCUS = ("random 1", 0.15, 3)
FOCUS_SEEDS = (1, 2)


# ---- measure -------------------------------------------------------------------------------------

def equal_runs(target):
    """(runs, equal ones) of rule "seeded" against plain sampling, tokens and weights."""
    mdl = make_target(target)
    n = EQUAL["tokens"]
    share = None
    done = equal = 0
    for temperature in TEMPERATURES:
        fitted = fit_draft(mdl, temperature)
        hostile = [[-value for value in row] for row in fitted]
        for k, (Wd, likeliest) in product(EQUAL["k"], ((fitted, False), (fitted, True),
                                                       (hostile, False))):
            chip = SampleChip(mdl, Wd, TOKENS, k, temperature, share=share, likeliest=likeliest)
            share = share or chip
            for start, seed in product(EQUAL["starts"], EQUAL["seeds"]):
                tokens, _, log = chip.generate(start, n, seed)
                rows = kept_rows(log)
                plain, records = chip.plain(start, n, seed)
                done += 1
                equal += tokens == plain and rows == [entry["weights"][0] for entry in records]
    return done, equal


def kept_rows(log):
    """The weights of each position's row; a later block's rows replace refused ones."""
    rows = []
    for entry in log:
        if entry["kind"] == "verify":
            rows[entry["c"]:] = entry["weights"]
    return rows


def law_drafts(chip):
    """{name: draft weights after each token}: the table's own, and three made of it."""
    table = chip.table
    return {"fitted": table,
            "hostile": [[max(row) - weight for weight in row] for row in table],
            "with zeros": [[weight if weight > max(row) // 8 else 0 for weight in row]
                           for row in table],
            "the target's": [chip.plain_weights((token,)) for token in range(tiny_lm.V)]}


def measure_law(rule, draft, k, start, temperature):
    """A dict: how many runs of LAW_TOKENS tokens can happen, and the variation from plain."""
    mdl = make_target("random 1")
    chip = SampleChip(mdl, fit_draft(mdl, temperature), TOKENS, k, temperature, rule)
    chip.table = chip.weight_table()
    chip.table = law_drafts(chip)[draft]
    found, plain = law(chip, start, LAW_TOKENS), plain_law(chip, start, LAW_TOKENS)
    return {"rule": rule, "draft": draft, "k": k, "start": start, "temperature": temperature,
            "outcomes": len(found), "variation": str(variation(found, plain))}


def measure_table(target):
    """Part 3 of one target: a dict per temperature, k and form, and greedy decoding beside them."""
    mdl = make_target(target)
    greedy = FastChip(mdl, spec_lm.make_draft(mdl, 0, DRAFT_SEED), TOKENS, 1)
    rows = []
    for k in GUESSES:
        chip = FastChip(mdl, greedy.Wd, TOKENS, k, share=greedy)
        runs = [(*chip.generate(start, TOKENS)[1:], chip.plain(start, TOKENS)[1])
                for start in TABLE_STARTS]
        rows.append({"target": target, "temperature": 0, "k": k, "form": "greedy", **tally(runs)})
    for temperature in TEMPERATURES:
        Wd = fit_draft(mdl, temperature)
        for k, (form, (rule, likeliest)) in product(GUESSES, FORMS.items()):
            chip = SampleChip(mdl, Wd, TOKENS, k, temperature, rule, share=greedy,
                              likeliest=likeliest)
            rows.append({"target": target, "temperature": temperature, "k": k, "form": form,
                         **tally(sampled(chip, TABLE_STARTS, (SEED,)))})
    return rows


def sampled(chip, starts, seeds):
    """[(stats, log, plain log)] of the chip's runs."""
    return [(*chip.generate(start, TOKENS, seed)[1:], chip.plain(start, TOKENS, seed)[1])
            for start, seed in product(starts, seeds)]


def tally(runs):
    """Sums over runs: guesses kept and looked at, blocks, tokens, cycles, plain cycles.

    A guess is looked at where the ones in front of it are kept.
    """
    total = dict.fromkeys(("kept", "looked_at", "blocks", "emitted", "cycles", "plain"), 0)
    for stats, log, plain_log in runs:
        blocks = [entry for entry in log if entry["kind"] == "verify"]
        ends = [entry["c"] for entry in blocks[1:]] + [stats["cache"]]
        for entry, end in zip(blocks, ends):
            kept = end - entry["c"] - 1
            total["kept"] += kept
            total["looked_at"] += min(kept + 1, entry["m"] - 1)
        total["blocks"] += len(blocks)
        total["emitted"] += stats["emitted"]
        total["cycles"] += spec_lm.cycles_of(log)
        total["plain"] += spec_lm.cycles_of(plain_log)
    return total


def measure_focus(form):
    """Part 4 of one rule: {draft: tally}."""
    target, temperature, k = FOCUS
    mdl = make_target(target)
    rule, likeliest = FORMS[form]
    drafts = {"fitted": fit_draft(mdl, temperature),
              "greedy table": spec_lm.make_draft(mdl, 0, DRAFT_SEED)}
    found = {}
    for name, Wd in drafts.items():
        chip = SampleChip(mdl, Wd, TOKENS, k, temperature, rule, likeliest=likeliest)
        found[name] = tally(sampled(chip, range(tiny_lm.V), FOCUS_SEEDS))
    return found


def measure_limit(target):
    """(largest logit of plain greedy runs, the temperature from which no score saturates)."""
    mdl = make_target(target)
    most = FastChip(mdl, spec_lm.make_draft(mdl, 0, DRAFT_SEED), TOKENS, 1).plan.ranges["logits"]
    return most, most / sample_lm.MOST


def measure_replayed():
    """Log entries of a run of each rule and of a plain run."""
    target, temperature, k = FOCUS
    mdl = make_target(target)
    Wd = fit_draft(mdl, temperature)
    entries = []
    for rule in sample_lm.RULES:
        chip = SampleChip(mdl, Wd, TOKENS, k, temperature, rule)
        entries += chip.generate(START, TOKENS, SEED)[2]
    return entries + chip.plain(START, TOKENS, SEED)[1]


MEASURES = {"equal": equal_runs, "law": lambda job: measure_law(*job), "table": measure_table,
            "focus": measure_focus, "limit": measure_limit,
            "replayed": lambda job: measure_replayed()}


def measure(job):
    """What a worker does: one part, or one target of it."""
    part, what = job
    return MEASURES[part](what)


def measure_all():
    """{part: its results, in the order of its jobs}."""
    laws = [(rule, draft, k, *place) for rule, ks, drafts, places in LAWS
            for draft, k, place in product(drafts, ks, places)]
    jobs = [("table", target) for target in TARGETS] + [("equal", target) for target in TARGETS]
    jobs += [("law", law) for law in laws] + [("focus", form) for form in FORMS]
    jobs += [("limit", target) for target in TARGETS] + [("replayed", None)]
    found = {part: [] for part in MEASURES}
    for (part, _), result in zip(jobs, cli.parallel(measure, jobs)):
        found[part].append(result)
    return found


# ---- rows ----------------------------------------------------------------------------------------

def rates(total):
    """What the sums say: share of looked-at guesses kept, tokens a block, speedup."""
    return {"kept": total["kept"] / total["looked_at"] if total["looked_at"] else None,
            "per_block": total["emitted"] / total["blocks"],
            "speedup": total["plain"] / total["cycles"]}


def table_rows(tallies):
    """A row per temperature, k and form: over the random models, and the structured one."""
    rows = []
    for first in tallies[0]:
        alike = [row for rows_ in tallies for row in rows_
                 if all(row[key] == first[key] for key in ("temperature", "k", "form"))]
        random_ = [rates(row) for row in alike if row["target"] != "structured"]
        structured = next(rates(row) for row in alike if row["target"] == "structured")
        logs = [math.log(row["speedup"]) for row in random_]
        rows.append({
            "temperature": first["temperature"], "k": first["k"], "form": first["form"],
            "kept": mean(row["kept"] for row in random_),
            "per_block": mean(row["per_block"] for row in random_),
            "speedup": math.exp(math.fsum(logs) / len(logs)),
            "structured_kept": structured["kept"], "structured_speedup": structured["speedup"]})
    return sorted(rows, key=lambda row: (-(row["temperature"] or 9), row["k"]))


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values)


def make_data(found, replayed, rtl):
    """Everything that is printed, as it goes into the JSON file."""
    laws = [dict(row, equal=row["variation"] == "0") for row in found["law"]]
    return {
        "seeds": {"runs": sum(runs for runs, _ in found["equal"]),
                  "equal": sum(equal for _, equal in found["equal"])},
        "laws": laws,
        "table": table_rows(found["table"]),
        "focus": [{"form": form, "draft": draft, **rates(total)}
                  for form, drafts in zip(FORMS, found["focus"])
                  for draft, total in drafts.items()],
        "limit": [{"target": target, "largest_logit": most, "temperature": least}
                  for target, (most, least) in zip(TARGETS, found["limit"])],
        "rtl_cycles": sum(counters[0] for counters in replayed),
        "rtl": rtl,
    }


# ---- format --------------------------------------------------------------------------------------

def format_text(data):
    """What is printed."""
    target, temperature, k = FOCUS
    return "\n\n".join([
        "1. Rule \"seeded\": runs with the tokens and weights of plain sampling with their seed: "
        "{equal:,} of {runs:,}".format(**data["seeds"]),
        f"2. Laws of {LAW_TOKENS} tokens, random model 1, all outcomes enumerated",
        law_table(data["laws"]),
        f"3. {TOKENS} tokens, speedup over plain sampling (random models: means over "
        f"{len(TARGETS) - 1}, speedup geometric)",
        result_table(data["table"]),
        f"4. {target}, T = {temperature}, k = {k}, all starts, seeds "
        f"{' and '.join(map(str, FOCUS_SEEDS))}",
        cli.format_table(("rule", "draft", "kept", "tokens/block", "speedup"),
                         [(row["form"], row["draft"], percent(row["kept"]),
                           f"{row['per_block']:.2f}", f"{row['speedup']:.2f}x")
                          for row in data["focus"]]),
        f"5. Scores saturate at {sample_lm.MOST}: from which temperature on none does",
        cli.format_table(("target", "largest logit", "temperature"),
                         [(row["target"], f"{row['largest_logit']:.2f}",
                           f"{row['temperature']:.3f}") for row in data["limit"]]),
        data["rtl"],
    ]) + "\n"


def law_table(laws):
    return cli.format_table(
        ("rule", "draft", "k", "start", "T", "outcomes", "total variation from plain sampling"),
        [(row["rule"], row["draft"], row["k"], row["start"], row["temperature"],
          f"{row['outcomes']:,}", row["variation"]) for row in laws])


def result_table(rows):
    return cli.format_table(
        ("T", "k", "rule", "kept", "tokens/block", "speedup", "structured: kept", "speedup"),
        [(row["temperature"] or "greedy", row["k"], row["form"], percent(row["kept"]),
          f"{row['per_block']:.2f}", f"{row['speedup']:.2f}x", percent(row["structured_kept"]),
          f"{row['structured_speedup']:.2f}x") for row in rows])


def percent(share):
    return f"{100 * share:.1f} %"


# ---- figure --------------------------------------------------------------------------------------

LOOKS = dict(zip(FORMS, zip((svg.BLUE, svg.SKY, svg.VERMILION, svg.ORANGE), svg.MARKERS,
                            ("none", "3 3", "none", "3 3"))))


def figure(rows, k=3):
    """Guesses kept and speedup against the temperature, a line per rule and draft."""
    picture = svg.Picture("ch16_sample", 760, 380, f"Sampling, k = {k}: guesses kept and speedup",
                          "Means over eight random models. Rule rejection with drawn guesses keeps "
                          "most; the likeliest token as guess keeps fewest at high temperature.")
    picture.text(20, 32, f"Sampling with k = {k}, means over the random models", size=15, bold=True)
    at = 20
    for form, (colour, marker, dash) in LOOKS.items():
        picture.line(at, 54, at + 26, 54, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        picture.marker(marker, at + 13, 54, size=4, fill=colour)
        picture.text(at + 33, 58, form, size=12)
        at += 60 + 7 * len(form)
    for left, key, words, most, step in ((50, "kept", "share of looked-at guesses kept", 1, 0.25),
                                         (430, "speedup", "speedup over plain sampling", 2.5, 0.5)):
        across = svg.Scale(0, len(TEMPERATURES) - 1, left + 30, left + 280)
        up = svg.Scale(0, most, 320, 100)
        picture.text(left, 86, words, size=12, bold=True)
        for tick in up.ticks(step):
            picture.line(left, up(tick), left + 300, up(tick), stroke=svg.LIGHT)
            picture.text(left - 6, up(tick) + 4, f"{tick:g}", size=12, anchor="end", fill=svg.GREY)
        for i, temperature in enumerate(TEMPERATURES):
            picture.text(across(i), 340, f"T = {temperature}", size=12, anchor="middle")
        for form, (colour, marker, dash) in LOOKS.items():
            values = {row["temperature"]: row[key] for row in rows
                      if row["k"] == k and row["form"] == form}
            points = [(across(i), up(values[temperature]))
                      for i, temperature in enumerate(TEMPERATURES)]
            picture.polyline(points, stroke=colour, stroke_width=2, stroke_dasharray=dash)
            for point in points:
                picture.marker(marker, *point, size=4, fill=colour)
    return picture


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments("Measure sampling: equal seeds, equal laws, acceptance and speed.", argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    cli.progress("sampling: about a minute ...")
    found = measure_all()
    (entries,) = found["replayed"]
    cli.progress(f"replaying {len(entries)} programs on the RTL ...")
    replayed = count(entries, sims)
    data = make_data(found, replayed, rtl_line(sims, len(entries), not_checked))
    text = format_text(data)
    cli.write_json(args.out / "ch16_sample.json", data)
    cli.write_text(args.out / "ch16_sample.txt", text)
    cli.write_text(args.out / "ch16_sample.svg", figure(data["table"]).render())
    print(text, end="")
    well = data["seeds"]["runs"] == data["seeds"]["equal"] and all(
        row["equal"] for row in data["laws"])
    return 0 if well and complete else 1


if __name__ == "__main__":
    sys.exit(cli.run(main))
