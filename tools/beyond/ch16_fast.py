"""Faster on the same chip: three better programs, each alone and together, beside the chapter's.

    python3 tools/beyond/ch16_fast.py [--sim icarus|verilator|both|none] [--out DIR]

1. The chapter's seven runs and k = 7, 32 tokens, one scale plan for all programs: the chapter's
   programs, each improvement of fast_lm alone, all three; cycles by unit; how far from the limit.
2. The two-token draft beside the bigram on random model 1, and what its answers cost on the chip.
3. Cycles per token against the context, to the longest the chip can attend to, and past it.

Every program executed is replayed on the RTL. Writes ch16_fast.json (all numbers), ch16_fast.txt
(what it prints) and ch16_fast.svg (part 1 as bars) into the folder out/.
"""

import paths

import sys

import cli
import ch16_fast_figures
import fast_lm
import hw
import pair_lm
import runs
import spec_lm
import tiny_lm
from capra import CompileError
from exact_lm import ExactChip
from ga2_isa import EXT, K_MAX, cycle_counts
from limit import floor
from runs import DRAFT_SEED, START, TOKENS, Run, arguments, count, rtl_line, rule_tokens

RUNS = (*runs.RUNS[:4], Run("structured: k=7 noise 0", "structured", 7, 0),
        *runs.RUNS[4:], Run("random 1: k=7", "random", 7, 0))
FORMS = {                                       # name: options of FastChip
    "chapter": {"batched": False, "table": False, "clip": False},
    "batched": {"batched": True, "table": False, "clip": False},
    "table": {"batched": False, "table": True, "clip": False},
    "clip": {"batched": False, "table": False, "clip": True},
    "all": {"batched": True, "table": True, "clip": True},
}
PAIR_GUESSES = (3, 7)                           # k of part 2
CONTEXT_GUESSES = (3, 7)                        # k of part 3
WINDOW = 8                                      # tokens of one line of part 3: whole blocks
TOO_MANY = 15                                   # guesses the scratchpad cannot hold at its end


# ---- measure -------------------------------------------------------------------------------------

class Programs:
    """The programs executed, each kept once with the memory it ran on."""

    def __init__(self):
        self.index = {}

    def add(self, log):
        """The numbers of a log's programs."""
        numbers = []
        for entry in log:
            key = tuple(tuple(ins.values()) for ins in entry["code"]), tuple(entry["ext"])
            fresh = len(self.index), entry
            numbers.append(self.index.setdefault(key, fresh)[0])
        return numbers

    def all(self):
        """A log entry of each, by number."""
        return [entry for _, entry in self.index.values()]


def measure(job):
    """(results, programs) of a part, in a worker; the results hold program numbers."""
    programs = Programs()
    return job(programs), programs.all()


def structured(programs):
    """Part 1 of the structured model."""
    return measure_runs("structured", programs)


def random_1(programs):
    """Part 1 of random model 1, and part 2."""
    return measure_runs("random", programs), measure_pairs(programs)


def measure_runs(kind, programs):
    """{run name: {form: (tokens equal, stats, rows of each block, program numbers)}}."""
    mdl = tiny_lm.make_model(kind)
    exact = ExactChip(mdl, spec_lm.make_draft(mdl, 0, DRAFT_SEED), TOKENS, 1)
    plain, records = exact.plain(START, TOKENS)
    if kind == "structured" and plain != rule_tokens():
        raise AssertionError(f"the plain run says {plain}, not the rule's tokens")
    results = {}
    for run in (run for run in RUNS if run.model == kind):
        if run.k is None:
            once = (True, None, [1] * TOKENS, programs.add(records))
            results[run.name] = {"chapter": once}
            continue
        Wd = spec_lm.make_draft(mdl, run.noise, DRAFT_SEED)
        results[run.name] = {}
        for form, options in FORMS.items():
            chip = fast_lm.FastChip(mdl, Wd, TOKENS, run.k, share=exact,
                                    **options)
            tokens, stats, log = chip.generate(START, TOKENS)
            rows = [entry["m"] for entry in log if entry["kind"] == "verify"]
            results[run.name][form] = (tokens == plain, stats, rows, programs.add(log))
    return results


def measure_pairs(programs):
    """Part 2, a dict per draft and k: the run, what was asked, and the price of an answer."""
    mdl = tiny_lm.make_model("random")
    first = pair_lm.PairChip(mdl, TOKENS, PAIR_GUESSES[0])
    results = []
    for k in PAIR_GUESSES:
        for chip in (fast_lm.FastChip(mdl, first.Wd, TOKENS, k, share=first, table=False),
                     pair_lm.PairChip(mdl, TOKENS, k, share=first, matrices=first.matrices)):
            tokens, stats, log = chip.generate(START, TOKENS)
            drafts = [entry for entry in log if entry["kind"] == "draft"]
            results.append({
                "draft": "two-token" if isinstance(chip, pair_lm.PairChip) else "bigram",
                "k": k,
                "tokens_equal": tokens == chip.plain(START, TOKENS)[0],
                "stats": stats,
                "verify": spec_lm.cycles_of(log) - spec_lm.cycles_of(drafts),
                "answer": spec_lm.cycles_of(drafts[:1]),
                "table": price_of_table(chip, programs),
                "asked": len({tuple(entry["ext"]) for entry in drafts}),
                "befores": len({entry.get("before") for entry in drafts}),
                "programs": programs.add(log),
            })
    return results


def price_of_table(chip, programs):
    """Cycles of the program that answers for all 16 tokens at once."""
    chip.log = []
    chip.draft_table()
    programs.add(chip.log)
    return spec_lm.cycles_of(chip.log)


def contexts(programs):
    """Part 3: a perfect draft to the longest context, and the refusals past it."""
    mdl = tiny_lm.make_model()
    exact = ExactChip(mdl, spec_lm.make_draft(mdl, 0, DRAFT_SEED), K_MAX, 1)
    fast = fast_lm.FastChip(mdl, exact.Wd, K_MAX, 1, share=exact)
    chapter = fast_lm.FastChip(mdl, exact.Wd, K_MAX, 1, share=exact, batched=False)
    plain, records = exact.plain(START, K_MAX)
    programs.add(records[-1:])
    guess = cycle_counts(exact.dprog.code)[0]
    lines = []
    for last in range(WINDOW, K_MAX + 1, WINDOW):
        line = {"tokens": [last - WINDOW + 1, last],
                "plain": spec_lm.cycles_of(records[last - WINDOW:last]) / WINDOW}
        for k in CONTEXT_GUESSES:
            cached = range(last - WINDOW, last, k + 1)
            line[f"chapter k={k}"] = sum(chapter.cost(c, k + 1) + k * guess
                                         for c in cached) / WINDOW
            line[f"all k={k}"] = sum(fast.cost(c, k + 1) for c in cached) / WINDOW
        lines.append(line)
    for k in CONTEXT_GUESSES:
        chip = fast_lm.FastChip(mdl, exact.Wd, K_MAX, k, share=fast)
        tokens, _, log = chip.generate(START, K_MAX)
        said = sum(line[f"all k={k}"] for line in lines) * WINDOW
        if tokens != plain or spec_lm.cycles_of(log[1:]) != said:
            raise AssertionError(f"{K_MAX} tokens at k = {k} are {tokens}, not {plain}, or do not "
                                 f"take {said} cycles")
        programs.add(log)
    return {"lines": lines, "table": spec_lm.cycles_of(log[:1]),
            "refusals": [refusal(fast.generate, START, K_MAX + 1),
                         refusal(fast._vprog, K_MAX - TOO_MANY - 1, TOO_MANY + 1)]}


def refusal(function, *arguments):
    """What a call is refused with."""
    try:
        function(*arguments)
    except CompileError as error:
        return str(error)
    raise AssertionError(f"{function.__name__}{arguments} was not refused")


# ---- rows ----------------------------------------------------------------------------------------

def make_rows(results, counters):
    """Part 1, a dict per run of one model; counters: by program number."""
    rows = []
    for run in (run for run in RUNS if run.name in results):
        forms = results[run.name]
        units = {form: sum_units([counters[i] for i in numbers])
                 for form, (_, _, _, numbers) in forms.items()}
        if run.k is None:
            plain = units["chapter"]["total"]   # the first of the model's runs
        best = "chapter" if run.k is None else "all"
        _, stats, blocks, _ = forms[best]
        limit = sum(floor(m) for m in blocks)
        rows.append({
            "run": run.name,
            "k": run.k,
            "tokens_equal": all(equal for equal, _, _, _ in forms.values()),
            "accepted": stats and stats["accepted"],
            "proposed": stats and stats["proposed"],
            "blocks": len(blocks),
            "units": units,
            "speedup": {form: round(plain / unit["total"], 2) for form, unit in units.items()},
            "limit": limit,
            "limit_speedup": round(plain / limit, 2),
            "times_limit": round(units[best]["total"] / limit, 2),
        })
    return rows


def sum_units(counters):
    """Cycles by unit of some programs; fetch: fetch and issue, the HALTs' included."""
    total, matrix, dma, vector, _ = (sum(column) for column in zip(*counters))
    return {"total": total, "matrix": matrix, "dma": dma, "vector": vector,
            "fetch": total - matrix - dma - vector}


def pair_rows(results, plain):
    """Part 2: a dict per draft, k and way to get the answers."""
    rows = []
    for result in results:
        stats = result["stats"]
        for way, cycles in ways(result).items():
            rows.append({
                "draft": result["draft"],
                "k": result["k"],
                "tokens_equal": result["tokens_equal"],
                "accepted": stats["accepted"],
                "proposed": stats["proposed"],
                "blocks": stats["blocks"],
                "way": way,
                "draft_cycles": cycles,
                "cycles": result["verify"] + cycles,
                "speedup": round(plain / (result["verify"] + cycles), 2),
            })
    return rows


def ways(result):
    """{way to get a draft's answers: its cycles on the chip in that run}."""
    cycles = {"a program a guess": result["answer"] * result["stats"]["proposed"],
              "each answer once": result["answer"] * result["asked"]}
    if result["draft"] == "bigram":
        cycles["all 16 at the start"] = result["table"]
    else:
        cycles["16 answers at first need"] = result["table"] * result["befores"]
        cycles["all 256 at the start"] = result["table"] * tiny_lm.V
    cycles["the host's own table"] = 0
    return cycles


# ---- format --------------------------------------------------------------------------------------

def format_text(data):
    """What is printed."""
    return "\n\n".join([
        f"1. {TOKENS} tokens from token {START}, one scale plan; speedups over the plain run",
        run_table(data["runs"]),
        "   Limit: weights loaded once a block, its rows multiplied by them, nothing else",
        unit_table(data["runs"]),
        "2. Random model 1: what the draft's answers cost (batched, clipped)",
        pair_table(data["pairs"]),
        f"3. Cycles per token, perfect draft (and {data['table']:,} a run for the draft's table)",
        context_table(data["contexts"]),
        "\n".join(["   Past the limits:"] + [f"   {text}" for text in data["refusals"]]),
        data["rtl"],
    ]) + "\n"


def run_table(rows):
    header = ("run", "tokens equal", "accepted", "blocks", *FORMS, "cycles", "limit", "its speedup",
              "cycles/limit")
    lines = []
    for row in rows:
        speedups = [f"{row['speedup'][form]:.2f}x" if form in row["speedup"] else "-"
                    for form in FORMS]
        share = "-" if row["k"] is None else f"{row['accepted']} of {row['proposed']}"
        cycles = row["units"].get("all", row["units"]["chapter"])["total"]
        lines.append((row["run"], "yes" if row["tokens_equal"] else "NO", share, row["blocks"],
                      *speedups, f"{cycles:,}", f"{row['limit']:,}",
                      f"{row['limit_speedup']:.2f}x", f"{row['times_limit']:.2f}"))
    return cli.format_table(header, lines)


def unit_table(rows):
    lines = []
    for row in rows:
        for form in ("chapter", "all"):
            if form in row["units"]:
                units = row["units"][form]
                lines.append((row["run"], form, *(f"{units[name]:,}" for name in (
                    "matrix", "dma", "vector", "fetch", "total"))))
    return cli.format_table(("run", "programs", "matrix", "dma", "vector", "fetch, issue", "total"),
                            lines)


def pair_table(rows):
    return cli.format_table(
        ("draft", "k", "accepted", "blocks", "answers", "draft cycles", "cycles", "speedup"),
        [(row["draft"], row["k"], f"{row['accepted']} of {row['proposed']}", row["blocks"],
          row["way"], f"{row['draft_cycles']:,}", f"{row['cycles']:,}", f"{row['speedup']:.2f}x")
         for row in rows])


def context_table(lines):
    forms = [name for name in lines[0] if name != "tokens"]
    return cli.format_table(["tokens"] + forms,
                            [["{} to {}".format(*line["tokens"])]
                             + [f"{line[form]:,.0f}" for form in forms] for line in lines])


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments("Measure what makes the decoder faster.", argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    cli.progress("measuring ...")
    (first, programs), ((second, pairs), more), (context, rest) = cli.parallel(
        measure, [structured, random_1, contexts])
    total = len(programs + more + rest)
    cli.progress(f"replaying {total} programs on the RTL ...")
    counters = count(programs + more + rest, sims, EXT)  # 64 tokens take more than 4,096 words
    rows = make_rows(first, counters) + make_rows(second, counters[len(programs):])
    data = {
        "runs": rows,
        "pairs": pair_rows(pairs, rows[0]["units"]["chapter"]["total"]),
        "contexts": context["lines"],
        "table": context["table"],
        "refusals": context["refusals"],
        "rtl": rtl_line(sims, total, not_checked),
    }
    text = format_text(data)
    cli.write_json(args.out / "ch16_fast.json", data)
    cli.write_text(args.out / "ch16_fast.txt", text)
    cli.write_text(args.out / "ch16_fast.svg", ch16_fast_figures.bars(rows).render())
    print(text, end="")
    well = all(row["tokens_equal"] for row in rows + data["pairs"])
    return 0 if well and complete else 1


if __name__ == "__main__":
    sys.exit(cli.run(main))
