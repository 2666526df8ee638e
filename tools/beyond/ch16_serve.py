"""Serving, simulated: one chip, a queue, and how many guesses to make under which load.

    python3 tools/beyond/ch16_serve.py [--sim icarus|verilator|both|none] [--out DIR]
                                       [--bandwidth GB/s] [--peak TFLOP/s]

1. cost    A pass costs its program's cycles: a part for its rows and a part for each sequence.
           Held against compiled programs; a sample of passes is replayed on the Verilog.
2. theory  One slot and no guesses is M/G/1: the mean wait against Pollaczek and Khinchine's.
3. chip    Random models 1 and 7, 4 slots, requests of 8 to 32 tokens: throughput and latency of
           k = 0, 1, 3, 7 and of a k chosen from the load, from 10 % to 95 % of that one's capacity.
4. 7B      The same queue with a roofline for its cost: 7 billion weights of 2 bytes, 64 slots.
           Bandwidth and peak are *assumed*, and yours to set; beside it the chapter's arithmetic.

Writes ch16_serve.json, ch16_serve.txt (what it prints) and ch16_serve.svg (part 3) into out/.
"""

import argparse
import functools
import math
import os
import random
import statistics
import sys
from pathlib import Path

os.environ.setdefault("GA2_EXT", "16384")       # before the chip's modules read it

import paths
import batch_runs
import cli
import hw
import serving
import svg
from ga2_isa import EXT, cycle_counts
from runs import count, rtl_line
from tiny_lm import V

TARGETS = (1, 7)                                # random models: a good draft and a poor one
SLOTS = 4
WANTED = (8, 32)                                # tokens of a request, from .. to
RUN = WANTED[1]
LOADS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
FIXED = (0, 1, 3, 7)
POLICIES = (*(f"k = {k}" for k in FIXED), "by load")
REQUESTS = 3000                                 # of a simulated run
SEED = 1
QUEUES = 24                                     # runs of the check against theory
QUEUE_REQUESTS = 2000
QUEUE_LOAD = 0.7
STUDENT = 2.807                                 # 99 % of Student's t with QUEUES - 1 degrees
MIXES = 40                                      # passes held against compiled programs
REPLAYED = 10
WEIGHTS = 7e9                                   # of the large model
BYTES = 2                                       # of a weight or cached number
CACHE = 2 * 32 * 4096                           # numbers that a token leaves in the cache
LARGE_SLOTS = 64
LARGE_CHANCE = 0.8
LARGE_DRAFT = 0.05                              # a guess's cost in passes of the target
LARGE_LOADS = (0.1, 0.5, 0.9)


# ---- the chip's cost -----------------------------------------------------------------------------

class Cost:
    """cost(shapes): the cycles of a batch program, from the programs of its parts.

    The instructions of a pass are those for all rows and those for each sequence's own attention.
    So its cycles are a sum: `rows` of the program of that many rows without a cache, and `own` of
    what a block (c, m) costs more than m of these rows.
    """

    def __init__(self, chip):
        self.chip = chip
        self.rows = functools.lru_cache(maxsize=None)(self._rows)
        self.own = functools.lru_cache(maxsize=None)(self._own)

    def program(self, shapes):
        return cycle_counts(self.chip.batch_program(tuple(shapes)).code)[0]

    def _rows(self, rows):
        return self.program([(0, 1)] * rows)

    def _own(self, c, m):
        return self.program([(c, m)]) - self.rows(m)

    def __call__(self, shapes):
        return self.rows(sum(m for _, m in shapes)) + sum(self.own(*shape) for shape in shapes)


def make_chip(target):
    return batch_runs.make_chip("random", target, RUN, 0, SLOTS)


def right_guesses(chip):
    """[right], a list per start: how many guesses behind each token of its plain run are right."""
    table = chip.draft_table()
    found = []
    for start in range(V):
        tokens = chip.plain(start, RUN + serving.MOST)[0]
        right = []
        for c in range(RUN):
            count, guess = 0, table[tokens[c]]
            while count < serving.MOST and guess == tokens[c + count + 1]:
                count, guess = count + 1, table[guess]
            right.append(count)
        found.append(right)
    return found


def measure_cost(target):
    """(passes alike, passes, log entries): the sum against compiled programs, some to replay."""
    chip = make_chip(target)
    cost = Cost(chip)
    R = random.Random(SEED)
    mixes = [[(R.randrange(RUN), R.randint(1, serving.MOST + 1))
              for _ in range(R.randint(1, SLOTS))] for _ in range(MIXES)]
    runs = {start: batch_runs.alone(chip, start, RUN + serving.MOST + 1) for start in range(SLOTS)}
    entries = [batch_runs.entry(chip, [
        (runs[start]["tokens"][c:c + m], runs[start]["k"][:c], runs[start]["v"][:c])
        for start, (c, m) in enumerate(mix)]) for mix in mixes[:REPLAYED]]
    return sum(cost(mix) == cost.program(mix) for mix in mixes), len(mixes), entries


# ---- simulate ------------------------------------------------------------------------------------

def policy(name, cost):
    """(choose, record) of a policy by its name."""
    return serving.by_load(cost) if name == "by load" else serving.fixed(int(name.split()[-1]))


def run(requests, slots, cost, name):
    choose, record = policy(name, cost)
    return serving.figures(serving.simulate(requests, slots, cost, choose, record))


def capacity(slots, cost, make, name):
    """Tokens per time when nobody has to be waited for."""
    R = random.Random(SEED)
    requests = [serving.Request(0.0, *make(R)) for _ in range(REQUESTS // 4)]
    return run(requests, slots, cost, name)["throughput"]


def sweep(slots, cost, make, loads):
    """{capacity: {policy: tokens per time}, rows: [{load, policy, figures ..}]}."""
    most = {name: capacity(slots, cost, make, name) for name in POLICIES}
    mean = (WANTED[0] + WANTED[1]) / 2
    rows = []
    for load in loads:
        requests = serving.poisson(REQUESTS, load * most["by load"] / mean, SEED, make)
        for name in POLICIES:
            rows.append({"load": load, "policy": name, **run(requests, slots, cost, name)})
    return {"capacity": most, "rows": rows}


def measure_chip(target):
    chip = make_chip(target)
    right = right_guesses(chip)
    return sweep(SLOTS, Cost(chip), lambda R: (R.randint(*WANTED), right[R.randrange(V)]), LOADS)


def measure_theory(target):
    """{simulated mean wait, half of its 99 % interval, the formula's}: one slot, no guesses."""
    cost = Cost(make_chip(target))
    times = {n: sum(cost([(c, 1)]) for c in range(n)) for n in range(WANTED[0], WANTED[1] + 1)}
    rate = QUEUE_LOAD / (math.fsum(times.values()) / len(times))
    means = []
    for seed in range(QUEUES):
        requests = serving.poisson(QUEUE_REQUESTS, rate, seed,
                                   lambda R: (R.randint(*WANTED), [0] * RUN))
        served = serving.simulate(requests, 1, cost, *serving.fixed(0))
        means.append(math.fsum(one.end - one.arrival - times[one.n] for one in served)
                     / len(served))
    return {"simulated": statistics.fmean(means),
            "half": STUDENT * statistics.stdev(means) / math.sqrt(QUEUES),
            "formula": serving.pollaczek_khinchine(rate, list(times.values()))}


def roofline(bandwidth, peak):
    """cost(shapes) in milliseconds: bytes over bandwidth or operations over peak, what is longer.

    The draft's guesses come one after the other, each LARGE_DRAFT of a pass of one row.
    """
    def seconds(rows, cached):
        loaded = BYTES * (WEIGHTS + CACHE * cached)
        return max(loaded / (bandwidth * 1e9), 2 * WEIGHTS * rows / (peak * 1e12))

    def cost(shapes):
        rows = sum(m for _, m in shapes)
        guesses = max(m for _, m in shapes) - 1
        cached = sum(c for c, _ in shapes)
        return 1000 * (seconds(rows, cached) + LARGE_DRAFT * guesses * seconds(len(shapes), cached))

    return cost


def measure_large(bandwidth, peak):
    def make(R):
        right = []
        for _ in range(RUN):
            count = 0
            while count < serving.MOST and R.random() < LARGE_CHANCE:
                count += 1
            right.append(count)
        return R.randint(*WANTED), right

    cost = roofline(bandwidth, peak)
    data = sweep(LARGE_SLOTS, cost, make, LARGE_LOADS)
    alone = {name: capacity(1, cost, make, name) for name in POLICIES}
    data["alone"] = [{"policy": name, "speedup": alone[name] / alone["k = 0"],
                      "arithmetic": arithmetic(int(name.split()[-1]))}
                     for name in POLICIES if name != "by load"]
    return data


def arithmetic(k):
    """The chapter's speedup: expected tokens over the cost in passes of the target."""
    return serving.expected(LARGE_CHANCE, k) / (1 + k * LARGE_DRAFT)


MEASURES = {"cost": measure_cost, "theory": measure_theory, "chip": measure_chip,
            "large": lambda what: measure_large(*what)}


def measure(job):
    """What a worker does."""
    part, what = job
    return MEASURES[part](what)


# ---- format --------------------------------------------------------------------------------------

def format_text(data):
    """What is printed."""
    theory = data["theory"]
    parts = [
        "1. Cost: {alike} of {passes} passes of random shapes cost the sum of their "
        "parts".format(**data["cost"]),
        "2. One slot, no guesses, load {:.0f} %: mean wait {:,.0f} +- {:,.0f} cycles (99 %); "
        "Pollaczek-Khinchine {:,.0f}".format(100 * QUEUE_LOAD, theory["simulated"], theory["half"],
                                             theory["formula"]),
    ]
    for target, chip in data["chip"].items():
        parts += [f"3. {target}, {SLOTS} slots, {REQUESTS:,} requests a run; times in 1,000 "
                  "cycles, throughput in tokens per 1,000 cycles",
                  f"   Capacity: {capacities(chip['capacity'], 1000)}",
                  sweep_table(chip["rows"], 1000),
                  "\n".join(f"   {line}" for line in verdicts(chip["rows"]))]
    large = data["large"]
    parts += [
        f"4. 7B *assumed*: {large['bandwidth']:g} GB/s, {large['peak']:g} TFLOP/s, "
        f"{LARGE_SLOTS} slots, a guess right with {LARGE_CHANCE}, at {LARGE_DRAFT} of a pass; "
        "times in ms, throughput in tokens per ms",
        "   Alone, speedup over k = 0, and the chapter's arithmetic:",
        cli.format_table(("policy", "simulated", "arithmetic"),
                         [(row["policy"], f"{row['speedup']:.2f}x", f"{row['arithmetic']:.2f}x")
                          for row in large["alone"]]),
        f"   Capacity: {capacities(large['capacity'], 1)}",
        sweep_table(large["rows"], 1),
        data["rtl"]]
    return "\n\n".join(parts) + "\n"


def capacities(most, unit):
    return ", ".join(f"{name} {value * unit:.3f}" for name, value in most.items())


def sweep_table(rows, unit):
    header = ("load", "policy", "throughput", *(f"{words} {name}" for words in
              ("first:", "between:", "end:") for name in ("mean", "median", "p99")))
    return cli.format_table(header, [
        (f"{100 * row['load']:.0f} %", row["policy"], f"{row['throughput'] * unit:.3f}",
         *(f"{row[what][name] / unit:,.1f}" for what in ("first", "between", "end")
           for name in ("mean", "median", "p99"))) for row in rows])


def verdicts(rows):
    """A sentence per load: "by load" against the best fixed k, by the mean time to the end."""
    lines = []
    for load in sorted({row["load"] for row in rows}):
        end = {row["policy"]: row["end"]["mean"] for row in rows if row["load"] == load}
        mine = end.pop("by load")
        best = min(end, key=end.get)
        more = 100 * (mine / end[best] - 1)
        lines.append(f"load {100 * load:.0f} %: by load takes {more:+.1f} % against the best fixed "
                     f"one, {best}")
    return lines


# ---- figure --------------------------------------------------------------------------------------

LOOKS = tuple(zip(POLICIES, (svg.MIDDLE, svg.SKY, svg.GREEN, svg.ORANGE, svg.BLUE), svg.MARKERS,
                  ("9 3", "3 3", "9 3 3 3", "14 4", "none")))


def figure(panels):
    """Mean time to the end against the load, a panel per target, a line per policy."""
    picture = svg.Picture("ch16_serve", 40 + 360 * len(panels), 400,
                          "Serving: mean time to the end against the load",
                          "A k chosen from the load is best or near the best at every load.")
    picture.text(20, 32, "Mean time to a request's last token (1,000 cycles)", size=15, bold=True)
    at = 20
    for name, colour, marker, dash in LOOKS:
        picture.line(at, 54, at + 26, 54, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        picture.marker(marker, at + 13, 54, size=4, fill=colour)
        picture.text(at + 33, 58, name, size=12)
        at += 60 + 7 * len(name)
    for number, (title, chip) in enumerate(panels.items()):
        left = 60 + 360 * number
        most = svg.round_up(3 * min(row["end"]["mean"] for row in chip["rows"]
                                    if row["load"] == LOADS[-1]) / 1000, 100)
        across = svg.Scale(0, 1, left, left + 280)
        up = svg.Scale(0, most, 340, 100)
        picture.text(left, 86, title, size=12, bold=True)
        for tick in up.ticks(most / 5):
            picture.line(left, up(tick), left + 280, up(tick), stroke=svg.LIGHT)
            picture.text(left - 6, up(tick) + 4, f"{tick:,.0f}", size=12, anchor="end",
                         fill=svg.GREY)
        for load in LOADS:
            picture.text(across(load), 360, f"{100 * load:.0f}", size=12, anchor="middle")
        picture.text(left + 140, 382, "load, % of the capacity by load", size=12, anchor="middle")
        for name, colour, marker, dash in LOOKS:
            points = [(across(row["load"]), up(row["end"]["mean"] / 1000)) for row in chip["rows"]
                      if row["policy"] == name and row["end"]["mean"] / 1000 <= most]
            picture.polyline(points, stroke=colour, stroke_width=2, stroke_dasharray=dash)
            for point in points:
                picture.marker(marker, *point, size=4, fill=colour)
    return picture


# ---- the script ----------------------------------------------------------------------------------

def positive(text):
    """A type of argparse: a number above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number above 0")
    return value


def main(argv=None):
    parser = cli.Parser(description="Serve a queue of requests, simulated.")
    hw.add_option(parser)
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the outputs (default out/)")
    parser.add_argument("--bandwidth", type=positive, default=2000.0, metavar="GB/s",
                        help="memory bandwidth assumed for the 7B model (default 2000)")
    parser.add_argument("--peak", type=positive, default=300.0, metavar="TFLOP/s",
                        help="arithmetic assumed for the 7B model (default 300)")
    args = parser.parse_args(argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    cli.progress("simulating queues: under a minute ...")
    jobs = [("chip", target) for target in TARGETS] + [("large", (args.bandwidth, args.peak))]
    jobs += [("theory", 1), ("cost", 1)]
    *chips, large, theory, (alike, passes, entries) = cli.parallel(measure, jobs)
    count(entries, sims, EXT)
    data = {
        "cost": {"alike": alike, "passes": passes},
        "theory": theory,
        "chip": {f"random model {target}": chip for target, chip in zip(TARGETS, chips)},
        "large": {"bandwidth": args.bandwidth, "peak": args.peak, **large},
        "rtl": rtl_line(sims, len(entries), not_checked),
    }
    text = format_text(data)
    cli.write_json(args.out / "ch16_serve.json", data)
    cli.write_text(args.out / "ch16_serve.txt", text)
    cli.write_text(args.out / "ch16_serve.svg", figure(data["chip"]).render())
    print(text, end="")
    well = alike == passes and abs(theory["simulated"] - theory["formula"]) <= theory["half"]
    return 0 if well and complete else 1


if __name__ == "__main__":
    sys.exit(cli.run(main))
