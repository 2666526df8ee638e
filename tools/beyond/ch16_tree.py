"""Trees of guesses: proved, the cheapest planned, and where they pay.

    python3 tools/beyond/ch16_tree.py [--sim icarus|verilator|both|none] [--out DIR]

1. proof   On symbols, for all inputs: every tree of up to 6 rows behind four caches, larger ones
           drawn at random, and every chain that the chip has room for, batched and the chapter's.
2. plan    Under independence, one list of chances after every token: the exact plan against all
           trees of up to 6 rows, and against a search that stops at its first peak.
3. border  The same where loading the weights takes 4 and 16 times as long (*derived*).
4. runs    Five drafts of the structured model and the bigrams of the random ones: the best fixed k
           chosen afterwards, planned chains, planned trees, each beside its share of hindsight.
           The draft's chances are its own logits.
5. RTL     Whole runs with planned trees replayed on the Verilog.

32 tokens, one scale plan. Writes ch16_tree.json, ch16_tree.txt (what it prints) and ch16_tree.svg
(a block of part 5: which row sees what) into out/.
"""

import math
import random
import sys

import paths
import ch16_tree_figure
import cli
import exact_proof
import hindsight
import hw
import spec_lm
import tiny_lm
import tree_lm
import tree_proof
from fast_lm import FastChip, guess_block
from ga2_isa import build, cycle_counts
from policy_lm import clipped, follow
from runs import START, TOKENS, arguments, count, make_draft, make_target, rtl_line
from tree_lm import TreeChip
from tree_plan import Costs, Planner
from tree_proof import all_trees, random_tree

ROWS = 16                                       # of a block at most: four full row tiles
CACHES = (0, 1, 5, 12)
SAMPLES = 60
PROVED_ON = "random 1"
LIKELIEST = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
ALTERNATIVES = 3                                # that share what the likeliest leaves, 2 to 1
LOADS = (1, 4, 16)                              # times the chip's own
NOISES = (0, 3, 4, 5, 6)
RANDOMS = range(1, 25)
PLANS = ("fixed", "chains", "trees")            # the best fixed k afterwards, planned, planned
REPLAYED = (("structured", "noise 4"), ("structured", "noise 6"), ("random 1", "noise 0"))


# ---- what a block costs --------------------------------------------------------------------------

def chain_costs(m):
    """{(c, m): cycles} of chains of m rows; alike for every model, as shapes alone decide."""
    mdl = make_target("structured")
    chip = TreeChip(mdl, make_draft(mdl, "noise 0"), TOKENS, ROWS)
    return {(c, m): chip.chain_cost(c, m) for c in range(TOKENS)}


def load_cycles():
    """Cycles in which a program loads the model's weights."""
    halt = [build("HALT")]
    return sum(cycle_counts([build("LD", len=len(W) * len(W[0]))] + halt)[0]
               - cycle_counts(halt)[0]
               for W in (tiny_lm.make_model()[name] for name in tiny_lm.MATRICES))


def loaded(chains, load):
    """Costs on a chip where loading the weights takes `load` times as long."""
    more = (load - 1) * load_cycles()
    return Costs(lambda c, m: chains[c, m] + more)


def plain_cycles(costs):
    return sum(costs.chain(c, 1) for c in range(TOKENS))


# ---- 1: the proof --------------------------------------------------------------------------------

def prove(job):
    """(programs proved, faults) of one part of the proof."""
    what, given = job
    mdl = make_target(PROVED_ON)
    Wd = make_draft(mdl, "noise 0")
    if what == "chains":
        chip = FastChip(mdl, Wd, TOKENS, 1, batched=given)
        shapes = list(exact_proof.held(chip))
        return len(shapes), exact_proof.unproved(chip, shapes)
    chip = TreeChip(mdl, Wd, TOKENS, ROWS)
    if what == "small":
        trees = [(given, parents) for m in range(1, tree_proof.SMALL + 1)
                 for parents in all_trees(m)]
    else:
        R = random.Random(given)
        trees = [(R.randrange(24), random_tree(R, R.randrange(tree_proof.SMALL + 1, ROWS + 1)))
                 for _ in range(SAMPLES)]
    return len(trees), tree_proof.unproved(chip, trees)


PROOFS = {"chapter's chains, all the chip can hold": [("chains", False)],
          "batched chains, all the chip can hold": [("chains", True)],
          f"all trees of up to {tree_proof.SMALL} rows behind {', '.join(map(str, CACHES))}":
              [("small", c) for c in CACHES],
          f"trees of {tree_proof.SMALL + 1} to {ROWS} rows, drawn behind 0 to 23":
              [("samples", 1), ("samples", 2)]}


# ---- 2 and 3: under independence -----------------------------------------------------------------

def profile(likeliest):
    """[chance of the likeliest guess, of the second, of the third]."""
    rest = (1 - likeliest) / 3
    return [likeliest, 2 * rest, rest][:ALTERNATIVES if rest else 1]


def measure_profile(job):
    """The expected cycles of 32 tokens under every plan, for (chance of the likeliest, chains)."""
    likeliest, chains = job
    ranks = profile(likeliest)
    chances = [ranks] * len(ranks)              # a token is a rank: what comes after is the same
    row = {"likeliest": likeliest, "loads": []}
    for load in LOADS:
        costs = loaded(chains, load)
        plans = {name: Planner(TOKENS, ROWS, chances, costs, most)
                 for name, most in (("chains", 1), ("trees", None))}
        row["loads"].append({
            "load": load, "plain": plain_cycles(costs),
            **{name: plan.value[TOKENS][0] for name, plan in plans.items()},
            "block": list(plans["trees"].blocks[20][0][0]),
            "chain": len(plans["chains"].blocks[20][0][0])})
    costs = loaded(chains, 1)
    row["first_peak"] = stopped(ranks, costs)
    small = Planner(TOKENS, tree_proof.SMALL, chances, costs)
    row["equal"] = sum(math.isclose(best, small.value[w][0], rel_tol=1e-12)
                       for w, best in enumerate(best_of_all(ranks, costs), 1))
    return row


def best_of_all(ranks, costs):
    """[V(1), .., V(TOKENS)], each the best of all trees of up to 6 rows in all orders."""
    trees = list(every_tree(ranks))
    value = [0.0]
    for w in range(1, TOKENS + 1):
        c = TOKENS - w
        cycles = {}
        best = math.inf
        for parents, reached in trees:
            if len(reached) <= w:
                if parents not in cycles:
                    cycles[parents] = costs.tree(c, parents)
                best = min(best, cycles[parents] + to_come(reached, value, w))
        value.append(best)
    return value[1:]


def every_tree(ranks):
    """(parents, reached) of every tree of up to 6 rows, each row a parent and a rank not taken.

    reached[d]: the chance that the accepted path comes to depth d.
    """
    def grow(parents, taken, chances, depths):
        reached = [math.fsum(chance for chance, depth in zip(chances, depths) if depth == d)
                   for d in range(max(depths) + 1)]
        yield tuple(parents), reached
        if len(parents) < tree_proof.SMALL:
            for parent in range(len(parents)):
                for rank, chance in enumerate(ranks):
                    if (parent, rank) not in taken:
                        yield from grow([*parents, parent], taken | {(parent, rank)},
                                        [*chances, chances[parent] * chance],
                                        [*depths, depths[parent] + 1])

    yield from grow([None], frozenset(), [1.0], [0])


def to_come(reached, value, w):
    """The sum over j of P(j tokens) * V(w - j)."""
    ends = [here - below for here, below in zip(reached, [*reached[1:], 0.0])]
    return math.fsum(end * value[w - 1 - depth] for depth, end in enumerate(ends))


def stopped(ranks, costs):
    """Expected cycles where the likeliest guess is added while the tokens per cycle rise."""
    value = [0.0]
    for w in range(1, TOKENS + 1):
        c = TOKENS - w
        tree, chances = [()], {(): 1.0}
        parents, reached = (None,), [1.0]
        while len(tree) < ROWS:
            following = {(*name, rank): chances[name] * chance for name in tree
                         for rank, chance in enumerate(ranks)
                         if (*name, rank) not in chances and len(name) + 1 < w}
            if not following:
                break
            name = min(following, key=lambda name: (-following[name], len(name), name))
            chances[name] = following[name]
            wider = sorted([*tree, name])       # depth first, the likeliest child first
            rows = tuple(wider.index(one[:-1]) if one else None for one in wider)
            paths_to = [math.fsum(chances[one] for one in wider if len(one) == depth)
                        for depth in range(max(map(len, wider)) + 1)]
            if (math.fsum(paths_to) / costs.tree(c, rows)
                    <= math.fsum(reached) / costs.tree(c, parents)):
                break
            tree, parents, reached = wider, rows, paths_to
        value.append(costs.tree(c, parents) + to_come(reached, value, w))
    return value[TOKENS]


# ---- 4: runs -------------------------------------------------------------------------------------

def measure_run(job):
    """A row of part 4 for (target, draft, chains)."""
    target, draft, chains = job
    mdl = make_target(target)
    chip = TreeChip(mdl, make_draft(mdl, draft), TOKENS, ROWS)
    tokens, _ = chip.plain(START, TOKENS + ROWS)
    chances = chip.chances(START)
    likeliest = [row.index(max(row)) for row in chances]

    def ahead(tokens, most):
        guesses = guess_block(tokens[-1], most, likeliest.__getitem__)
        return [(two, chances[one][two]) for one, two in zip(guesses, guesses[1:])], 0

    right = hindsight.right_guesses(tokens, TOKENS, ahead)
    row = {"target": target, "draft": draft, "table": spec_lm.cycles_of(chip.log),
           "right": sum(likeliest[one] == two for one, two in zip(tokens, tokens[1:TOKENS + 1])),
           "loads": []}
    for load in LOADS:
        costs = loaded(chains, load)
        fixed = [hindsight.play(tokens, TOKENS, follow(TOKENS, clipped(k), ahead),
                                costs.chain)[1] for k in range(ROWS)]
        entry = {"load": load, "plain": plain_cycles(costs), "fixed": min(fixed),
                 "k": fixed.index(min(fixed)),
                 "hindsight": hindsight.hindsight(TOKENS, right, costs.chain)[0]}
        for name, most in (("chains", 1), ("trees", None)):
            planner = Planner(TOKENS, ROWS, chances, costs, most)
            stats, cycles = tree_lm.play(tokens, TOKENS, planner, costs.tree)
            entry[name] = cycles
            entry[f"{name}_stats"] = stats
        row["loads"].append(entry)
    return row


def speedups(row):
    """[{plan: speedup} for each load] of a row of part 4, hindsight's among them."""
    return [{plan: entry["plain"] / entry[plan] for plan in (*PLANS, "hindsight")}
            for entry in row["loads"]]


def mean_rows(rows):
    """Geometric means of the random models' speedups, a dict for each load."""
    means = []
    for number, load in enumerate(LOADS):
        each = [speedups(row)[number] for row in rows if row["target"].startswith("random")]
        means.append({"load": load, **{
            name: math.exp(math.fsum(math.log(one[name]) for one in each) / len(each))
            for name in each[0]}})
    return means


# ---- 5: on the chip ------------------------------------------------------------------------------

def run_on_chip(job):
    """(row, log) of a whole run with planned trees."""
    target, draft = job
    mdl = make_target(target)
    chip = TreeChip(mdl, make_draft(mdl, draft), TOKENS, ROWS)
    plain, records = chip.plain(START, TOKENS)
    tokens, stats, log = chip.generate(START, TOKENS)
    blocks = []
    for entry in log:
        if entry["kind"] == "verify":
            c, parents, toks = (entry[key] for key in ("c", "parents", "tokens"))
            choice = [tokens[c + len(path)] for path in tree_lm.paths(parents)]
            blocks.append({"c": c, "parents": parents, "tokens": toks,
                           "path": tree_lm.accepted_path(parents, toks, choice)})
    cycles = spec_lm.cycles_of(log)
    return {"target": target, "draft": draft, "tokens_equal": tokens == plain, **stats,
            "cycles": cycles, "speedup": spec_lm.cycles_of(records) / cycles,
            "trees": blocks}, log


def pictured(runs):
    """The block of the figure: of those whose accepted rows are not the first, the deepest."""
    scattered = [block for run in runs for block in run["trees"]
                 if block["path"] != list(range(len(block["path"])))]
    return max(scattered, key=lambda block: (len(block["parents"]),
                                             max(map(len, tree_lm.paths(block["parents"])))))


# ---- format --------------------------------------------------------------------------------------

def format_text(data):
    """What is printed."""
    return "\n\n".join([
        f"1. Proved on symbols, {PROVED_ON}: every row has the terms of its own plain step",
        proof_table(data["proof"]),
        f"2. {TOKENS} tokens expected under independence, blocks of up to {ROWS} rows",
        plan_table(data["profiles"]),
        "   First peak: the likeliest guess is added while the expected tokens per cycle rise.\n"
        f"   Equal: runs of 1 to {TOKENS} tokens whose plan is the best of all trees of up to "
        f"{tree_proof.SMALL} rows.",
        "3. The same where loading the weights takes longer (*derived*); trees over chains",
        border_table(data["profiles"]),
        f"4. Runs of {TOKENS} tokens from token {START}, the draft's table on the host; 4 and 16 "
        "times the load *derived*",
        run_table(data["runs"]),
        mean_table(data["means"]),
        "   %: of hindsight, the cheapest chains of the draft's likeliest guesses. A tree has\n"
        "   other guesses as well and may go past it.",
        f"   From the chip, the draft's table costs {data['runs'][0]['table']:,} cycles a run.",
        "5. On the chip, the table's program included",
        chip_table(data["replayed"]),
        data["rtl"],
    ]) + "\n"


def proof_table(rows):
    return cli.format_table(("programs", "proved", "faults"),
                            [(row["what"], f"{row['programs']:,}", len(row["faults"]))
                             for row in rows])


def plan_table(rows):
    lines = []
    for row in rows:
        chip = row["loads"][0]
        lines.append((f"{row['likeliest']:.1f}", *(f"{chip['plain'] / cycles:.2f}x" for cycles in (
            row["first_peak"], chip["chains"], chip["trees"])), f"{row['equal']} of {TOKENS}",
            chip["chain"], " ".join(map(str, chip["block"][1:])) or "-"))
    return cli.format_table(("likeliest", "first peak", "chains", "trees", "equal",
                             "a chain's rows", "a tree's parents behind 12"), lines)


def border_table(rows):
    lines = []
    for row in rows:
        line = [f"{row['likeliest']:.1f}"]
        for entry in row["loads"]:
            line += [f"{entry['plain'] / entry['trees']:.2f}x",
                     f"{100 * (entry['chains'] / entry['trees'] - 1):+.1f} %",
                     len(entry["block"])]
        lines.append(line)
    names = [f"{name} {load}" for load in LOADS for name in ("load", "gain", "rows")]
    return cli.format_table(("likeliest", *names), lines)


def run_table(rows):
    lines = []
    for row in rows:
        name = row["draft"] if row["target"] == "structured" else row["target"]
        lines.append((name, row["right"], row["loads"][0]["k"],
                      *(cell for one in speedups(row) for cell in plan_cells(one))))
    names = [f"{plan} {load}" for load in LOADS for plan in PLANS]
    return cli.format_table(("draft", "right", "best k", *names), lines)


def plan_cells(one):
    """The speedup of every plan, with its share of hindsight."""
    return [f"{one[plan]:.2f}x {100 * one[plan] / one['hindsight']:3.0f} %" for plan in PLANS]


def mean_table(means):
    return cli.format_table(
        (f"random {RANDOMS[0]} to {RANDOMS[-1]}", *PLANS, "hindsight"),
        [(f"load {one['load']}", *plan_cells(one), f"{one['hindsight']:.2f}x") for one in means])


def chip_table(rows):
    return cli.format_table(
        ("target", "draft", "tokens equal", "accepted", "blocks", "cycles", "speedup"),
        [(row["target"], row["draft"], "yes" if row["tokens_equal"] else "NO",
          f"{row['accepted']} of {row['proposed']}", row["blocks"], f"{row['cycles']:,}",
          f"{row['speedup']:.2f}x") for row in rows])


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments("Prove trees of guesses, plan the cheapest, and measure where they pay.", argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    cli.progress("proving ...")
    parts = [(what, job) for what, jobs in PROOFS.items() for job in jobs]
    proved = cli.parallel(prove, [job for _, job in parts])
    cli.progress("planning ...")
    chains = {}
    for some in cli.parallel(chain_costs, range(ROWS, 0, -1)):
        chains.update(some)
    profiles = cli.parallel(measure_profile, [(likeliest, chains) for likeliest in LIKELIEST])
    drafts = [("structured", f"noise {noise}") for noise in NOISES]
    drafts += [(f"random {seed}", "noise 0") for seed in RANDOMS]
    rows = cli.parallel(measure_run, [(*draft, chains) for draft in drafts])
    replayed = cli.parallel(run_on_chip, REPLAYED)
    log = [entry for _, entries in replayed for entry in entries]
    cli.progress(f"replaying {len(log)} programs on the RTL ...")
    count(log, sims)
    data = {
        "proof": [{"what": name, **together(name, parts, proved)} for name in PROOFS],
        "profiles": profiles,
        "runs": rows,
        "means": mean_rows(rows),
        "replayed": [row for row, _ in replayed],
        "rtl": rtl_line(sims, len(log), not_checked),
    }
    text = format_text(data)
    cli.write_json(args.out / "ch16_tree.json", data)
    cli.write_text(args.out / "ch16_tree.txt", text)
    cli.write_text(args.out / "ch16_tree.svg",
                   ch16_tree_figure.block(pictured(data["replayed"])).render())
    print(text, end="")
    well = (all(row["tokens_equal"] for row in data["replayed"])
            and all(row["equal"] == TOKENS for row in profiles)
            and not any(row["faults"] for row in data["proof"]))
    return 0 if well and complete else 1


def together(name, parts, proved):
    """{programs, faults} of the parts of one kind of proof."""
    mine = [result for (what, _), result in zip(parts, proved) if what == name]
    return {"programs": sum(programs for programs, _ in mine),
            "faults": [fault for _, faults in mine for fault in faults]}


if __name__ == "__main__":
    sys.exit(cli.run(main))
