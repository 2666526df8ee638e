"""A batch: is each answer the same as alone, and what is left of speculation when rows are full?

    python3 tools/beyond/ch16_batch.py [--sim icarus|verilator|both|none] [--out DIR]

1. proof    On symbols: every mix of up to 3 sequences of up to 4 rows behind caches of 0, 1, 3, 12.
2. company  Every pass that three requests of 4 tokens can meet, k = 0, 1, 2 mixed, in any order;
            and how many histories of arrivals and passes these make up.
3. loads    1,000 random loads, requests of uneven length and k: tokens and logits as alone.
4. table    Throughput against one plain sequence: 16 tokens cached, B sequences, k guesses each,
            all of them right; the programs replayed on the Verilog.
   Why it shrinks: cycles a token, for all rows together and for each sequence's own attention.
5. chances  The same where a guess is right with a given chance: the best k, and what it brings;
            the border, the chance from which guessing beats no guessing.
6. bigram   Eight requests of 24 tokens on random models, the bigram's table on the chip.

External memory holds 16,384 words here (GA2_EXT): eight caches do not fit in the usual 8,192.
Writes ch16_batch.json, ch16_batch.txt (what it prints) and ch16_batch.svg (parts 4, 5) into out/.
"""

import math
import os
import sys

os.environ.setdefault("GA2_EXT", "16384")       # before the chip's modules read it

import paths
import batch_proof
import batch_runs
import cli
import hw
import spec_lm
import svg
import tiny_lm
from capra import CompileError
from ga2_isa import EXT, cycle_counts
from runs import arguments, count, rtl_line

CACHED = 16
WIDTHS = (1, 2, 4, 8)                           # B, sequences in a pass
GUESSES = (0, 1, 3, 7)                          # k of each
CHANCES = (1.0, 0.9, 0.8, 0.6, 0.4)
LOADS = 1000
SHARES = 8                                      # pieces that the cores take turns at
TARGETS = range(1, 9)
REQUESTS = [(2 * i, 24) for i in range(8)]


# ---- measure -------------------------------------------------------------------------------------

def share(items, number):
    """One of SHARES pieces of a list."""
    return list(items)[number::SHARES]


def measure_proof(number):
    """(mixes, faults)."""
    mixes = share(batch_proof.MIXES, number)
    return len(mixes), batch_proof.unproved(batch_runs.make_chip("random", 1, 16), mixes)


def company():
    """(chip, plain runs, drafts) of the three requests."""
    n = batch_runs.COMPANY_TOKENS
    chip = batch_runs.make_chip("random", 1, n, max(batch_runs.COMPANY_GUESSES), 3)
    return chip, [batch_runs.alone(chip, start, n) for start in batch_runs.COMPANY_STARTS], \
        chip.drafts()


def measure_company(number):
    """(passes, faults)."""
    chip, runs, draft_after = company()
    passes = share(batch_runs.companies(), number)
    return len(passes), [problem for members in passes
                         for problem in batch_runs.wrong_pass(chip, runs, draft_after, members)]


def measure_histories(number):
    """How many ways there are to serve the three requests."""
    chip, runs, draft_after = company()
    return batch_runs.histories(batch_runs.advances(runs, draft_after([0])))


def measure_loads(number):
    """(loads, passes, faults), the target another one in each share."""
    chip = batch_runs.make_mixed("random", number + 1)
    runs = {start: batch_runs.alone(chip, start, batch_runs.LONGEST) for start in range(tiny_lm.V)}
    seeds = share(range(LOADS), number)
    passes, faults = 0, []
    for seed in seeds:
        found, made = batch_runs.wrong_load(chip, runs, seed)
        faults += found
        passes += made
    return len(seeds), passes, faults


def measure_table(number):
    """(log entries, refusals): the plain step and a pass of each width and k with right guesses."""
    chip = batch_runs.make_chip("random", 1, CACHED + 2 * max(GUESSES), 0, max(WIDTHS))
    n = CACHED + max(GUESSES) + 1
    runs = [batch_runs.alone(chip, start, n) for start in range(max(WIDTHS))]
    entries, refusals = {}, {}
    for B in WIDTHS:
        for k in GUESSES:
            blocks = [(run["tokens"][CACHED:CACHED + k + 1], run["k"][:CACHED], run["v"][:CACHED])
                      for run in runs[:B]]
            try:
                entries[B, k] = batch_runs.entry(chip, blocks)
            except CompileError as error:
                refusals[B, k] = str(error)
    return entries, refusals


def measure_rows(number):
    """{rows: cycles of a pass of that many rows of as many sequences, without caches}."""
    chip = batch_runs.make_chip("random", 1, CACHED)
    return {B * (k + 1): cycle_counts(chip.batch_program(((0, 1),) * (B * (k + 1))).code)[0]
            for B in WIDTHS for k in GUESSES if B * (k + 1) <= 32}


def measure_bigram(number):
    """{(B, k): speedup over plain decoding alone} of one random model."""
    chip = batch_runs.make_chip("random", number, REQUESTS[0][1])
    plain = sum(spec_lm.cycles_of(chip.plain(start, n)[1]) for start, n in REQUESTS)
    found = {}
    for B in WIDTHS:
        for k in GUESSES:
            chip.slots, chip.k = B, k
            try:
                log = chip.generate(REQUESTS)[2]
            except CompileError:                # the pass does not fit
                continue
            log = log if k else log[1:]         # without guesses there is no table to ask
            found[B, k] = plain / spec_lm.cycles_of(log)
    return found


MEASURES = {"proof": measure_proof, "company": measure_company, "histories": measure_histories,
            "loads": measure_loads, "table": measure_table, "rows": measure_rows,
            "bigram": measure_bigram}


def measure(job):
    """What a worker does."""
    part, number = job
    return MEASURES[part](number)


def measure_all():
    """{part: its results}."""
    jobs = [(part, number) for number in range(SHARES) for part in ("proof", "company", "loads")]
    jobs += [("bigram", seed) for seed in TARGETS] + [("histories", 0), ("table", 0), ("rows", 0)]
    found = {part: [] for part in MEASURES}
    for (part, _), result in zip(jobs, cli.parallel(measure, jobs)):
        found[part].append(result)
    return found


# ---- rows ----------------------------------------------------------------------------------------

def expected_tokens(chance, k):
    """Tokens that a block of k guesses brings, each right with `chance` behind a right one."""
    return float(k + 1) if chance == 1 else (1 - chance ** (k + 1)) / (1 - chance)


def table_rows(cycles, chances):
    """[{B, chance, gain: {k: throughput against one plain sequence}, best k, of k = 0}]."""
    rows = []
    for chance in chances:
        for B in WIDTHS:
            gain = {k: B * expected_tokens(chance, k) * cycles[1, 0] / cycles[B, k]
                    for k in GUESSES if (B, k) in cycles}
            best = max(gain, key=gain.get)
            rows.append({"chance": chance, "B": B,
                         "gain": {str(k): round(value, 2) for k, value in gain.items()},
                         "best_k": best, "of_k_0": round(gain[best] / gain[0], 2)})
    return rows


def border(cycles, B, k):
    """The chance from which k guesses bring more tokens a cycle than none; None where none does."""
    def gains(chance):
        return expected_tokens(chance, k) * cycles[B, 0] > cycles[B, k]

    if (B, k) not in cycles or not gains(1):
        return None
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (low, middle) if gains(middle) else (middle, high)
    return round(high, 3)


def cause_rows(cycles, rows):
    """[{B, k, a token: cycles for it, of which for all rows together, for its own attention}]."""
    found = []
    for (B, k), total in cycles.items():
        tokens = B * (k + 1)
        if tokens in rows:
            found.append({"B": B, "k": k, "cycles": round(total / tokens),
                          "rows": round(rows[tokens] / tokens),
                          "own": round((total - rows[tokens]) / tokens)})
    return found


def bigram_rows(found):
    """[{B, gain: {k: geometric mean over the models}, best k, of k = 0}]."""
    rows = []
    for B in WIDTHS:
        gain = {}
        for k in GUESSES:
            speedups = [one[B, k] for one in found if (B, k) in one]
            if len(speedups) == len(found):
                gain[k] = math.exp(math.fsum(map(math.log, speedups)) / len(speedups))
        best = max(gain, key=gain.get)
        rows.append({"B": B, "gain": {str(k): round(value, 2) for k, value in gain.items()},
                     "best_k": best, "of_k_0": round(gain[best] / gain[0], 2)})
    return rows


def make_data(found, cycles, refusals, rtl):
    """Everything that is printed, as it goes into the JSON file."""
    def total(part, place):
        return sum(result[place] for result in found[part])

    return {
        "proof": {"mixes": total("proof", 0), "faults": sum((r[1] for r in found["proof"]), [])},
        "company": {"passes": total("company", 0), "histories": found["histories"][0],
                    "faults": sum((r[1] for r in found["company"]), [])},
        "loads": {"loads": total("loads", 0), "passes": total("loads", 1),
                  "faults": sum((r[2] for r in found["loads"]), [])},
        "cycles": {f"B={B} k={k}": value for (B, k), value in cycles.items()},
        "refusals": {f"B={B} k={k}": text for (B, k), text in refusals.items()},
        "table": table_rows(cycles, CHANCES),
        "causes": cause_rows(cycles, found["rows"][0]),
        "border": [{"B": B, **{str(k): border(cycles, B, k) for k in GUESSES[1:]}}
                   for B in WIDTHS],
        "bigram": bigram_rows(found["bigram"]),
        "rtl": rtl,
    }


# ---- format --------------------------------------------------------------------------------------

def format_text(data):
    """What is printed."""
    proof, company_, loads = (data[name] for name in ("proof", "company", "loads"))
    faults = [problem for name in ("proof", "company", "loads") for problem in data[name]["faults"]]
    return "\n\n".join([
        f"1. On symbols: {proof['mixes']:,} mixes, {len(proof['faults'])} with a row that is not "
        "its plain step",
        f"2. Every pass of three requests: {company_['passes']:,}, "
        f"{len(company_['faults'])} otherwise than alone; they make up "
        f"{company_['histories']:,} histories",
        f"3. {loads['loads']:,} random loads, {loads['passes']:,} passes: "
        f"{len(loads['faults'])} otherwise than alone",
        *faults[:9],
        f"4. Throughput against one plain sequence, {CACHED} tokens cached, all guesses right",
        gain_table([row for row in data["table"] if row["chance"] == 1], ("B",)),
        "\n".join(f"   {name}: {text}" for name, text in data["refusals"].items()),
        "   Cycles a token: for all rows together, and more for each sequence's own cache",
        cli.format_table(("B", "k", "cycles", "rows", "own"),
                         [tuple(row.values()) for row in data["causes"]]),
        "5. The same where a guess is right with a chance; no draft cost",
        gain_table([row for row in data["table"] if row["chance"] < 1], ("chance", "B")),
        "   The border: the chance from which k guesses beat none",
        cli.format_table(("B", *(f"k = {k}" for k in GUESSES[1:])),
                         [("-" if value is None else value for value in row.values())
                          for row in data["border"]]),
        f"6. {len(REQUESTS)} requests of {REQUESTS[0][1]} tokens, random models 1 to "
        f"{len(TARGETS)}, bigram: geometric mean over plain decoding alone",
        gain_table(data["bigram"], ("B",)),
        data["rtl"],
    ]) + "\n"


def gain_table(rows, keys):
    return cli.format_table(
        (*keys, *(f"k = {k}" for k in GUESSES), "best k", "over k = 0"),
        [(*(row[key] for key in keys),
          *(f"{row['gain'][str(k)]:.2f}x" if str(k) in row["gain"] else "-" for k in GUESSES),
          row["best_k"], f"{row['of_k_0']:.2f}x") for row in rows])


# ---- figure --------------------------------------------------------------------------------------

LOOKS = tuple(zip(CHANCES, (svg.BLUE, svg.GREEN, svg.ORANGE, svg.PURPLE, svg.VERMILION),
                  svg.MARKERS, ("none", "9 3", "3 3", "9 3 3 3", "14 4")))


def figure(rows):
    """What the best k brings over none, against the sequences in a pass, a line per chance."""
    picture = svg.Picture("ch16_batch", 640, 380, "What speculation brings in a batch",
                          "; ".join(f"chance {row['chance']}, {row['B']} sequences: "
                                    f"{row['of_k_0']:.2f}" for row in rows))
    picture.text(20, 32, "Throughput of the best k over none", size=15, bold=True)
    across = svg.Scale(0, len(WIDTHS) - 1, 70, 440)
    up = svg.Scale(1, 3, 320, 70)
    for tick in up.ticks(0.5):
        picture.line(60, up(tick), 450, up(tick), stroke=svg.LIGHT)
        picture.text(52, up(tick) + 4, f"{tick:.1f}", size=12, anchor="end", fill=svg.GREY)
    for i, B in enumerate(WIDTHS):
        picture.text(across(i), 342, str(B), size=12, anchor="middle")
    picture.text(255, 364, "sequences in a pass", size=12, anchor="middle")
    for chance, colour, marker, dash in LOOKS:
        points = [(across(WIDTHS.index(row["B"])), up(row["of_k_0"])) for row in rows
                  if row["chance"] == chance]
        picture.polyline(points, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        for point in points:
            picture.marker(marker, *point, size=4, fill=colour)
    for i, (chance, colour, marker, dash) in enumerate(LOOKS):
        y = 90 + 24 * i
        picture.line(470, y, 500, y, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        picture.marker(marker, 485, y, size=4, fill=colour)
        picture.text(508, y + 4, f"chance {chance}", size=12)
    return picture


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments("Measure batches: equal answers, and what speculation brings.", argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    cli.progress("proof, passes and loads: about a minute ...")
    found = measure_all()
    (entries, refusals), = found["table"]
    cli.progress(f"replaying {len(entries)} programs on the RTL ...")
    counted = count(list(entries.values()), sims, EXT)
    cycles = {shape: total for shape, (total, *_) in zip(entries, counted)}
    data = make_data(found, cycles, refusals, rtl_line(sims, len(entries), not_checked))
    text = format_text(data)
    cli.write_json(args.out / "ch16_batch.json", data)
    cli.write_text(args.out / "ch16_batch.txt", text)
    cli.write_text(args.out / "ch16_batch.svg", figure(data["table"]).render())
    print(text, end="")
    well = not any(data[part]["faults"] for part in ("proof", "company", "loads"))
    return 0 if well and complete else 1


if __name__ == "__main__":
    sys.exit(cli.run(main))
