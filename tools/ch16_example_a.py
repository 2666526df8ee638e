"""Running example A: three blocks traced, what a block costs, and that no row sees a later one.

    python3 tools/ch16_example_a.py [--out DIR]

1. Three blocks of random model 1 with 3 guesses: guesses, the target's choices, what is accepted;
   in floating point, and the same host loop on the chip.
2. The verifier program for 4 rows behind 4 cached ones against the four single steps it stands for.
3. The integers of the logits when one token of a block is changed, with sharp attention.

Writes ch16_example_a.json (all numbers) and ch16_example_a_out.txt (what it prints) into out/.
"""

import paths

import argparse
import sys
from pathlib import Path

import cli

import ga2_isa
import spec_lm
import spec_tests
import tiny_lm

SEED = 1                                        # of the random model
DRAFT_NOISE = 0
DRAFT_SEED = 1
START = 0
TOKENS = 24                                     # the chip is calibrated for
K = 3                                           # guesses a block
BLOCKS = 3                                      # traced
FLOAT_TOKENS = 13                               # shown of the plain run in floating point
CACHED = 4                                      # rows in the cache, where a block's cost is taken
CONTEXTS = range(CACHED + 1, CACHED + K + 2)    # of the single steps that one block stands for
CHANGED = ((1, 2, 3, 4), (1, 2, 3, 12), (1, 2, 9, 4), (5, 2, 3, 4))
SHOWN = 5                                       # logits of each row

COUNTERS = ("cycles", "matrix", "dma", "vector", "instructions")


# ---- measure -------------------------------------------------------------------------------------

def measure():
    """All numbers of the example, as they go into the JSON file."""
    mdl = tiny_lm.make_model("random", SEED)
    Wd = spec_lm.make_draft(mdl, DRAFT_NOISE, DRAFT_SEED)
    chip = spec_lm.SpecChip(mdl, Wd, TOKENS, K)
    block = chip._vprog(CACHED, K + 1)
    plain = tiny_lm.Chip(mdl, CONTEXTS[-1])
    steps = [plain.program(L) for L in CONTEXTS]
    return {
        "float_tokens": tiny_lm.float_generate(mdl, START, FLOAT_TOKENS),
        "trace": trace(mdl, Wd, spec_lm.float_verify(mdl),
                       lambda tok: spec_lm.draft_next(mdl, Wd, tok)),
        "chip_trace": trace(mdl, Wd, chip.verify, chip.draft),
        "counters": COUNTERS,
        "verify": ga2_isa.cycle_counts(block.code),
        "verify_instructions": instruction_counts(block.code),
        "verify_words_loaded": words_loaded(block.code),
        "contexts": list(CONTEXTS),
        "single": [ga2_isa.cycle_counts(P.code) for P in steps],
        "single_words_loaded": [words_loaded(P.code) for P in steps],
        "weight_words": sum(len(mdl[name]) * len(mdl[name][0]) for name in tiny_lm.MATRICES),
        "mask": mask(block.graph),
        "causality": causality(),
    }


def trace(mdl, Wd, target, draft):
    """The first BLOCKS blocks of the host loop: {block, choice, accepted, new} each."""
    entries = []

    def verify(c, toks, kc, vc):
        choice, k_rows, v_rows = target(c, toks, kc, vc)
        accepted = agreeing(toks[1:], choice)
        entries.append({"block": toks, "choice": choice, "accepted": accepted,
                        "new": toks[1:accepted + 1] + [choice[accepted]]})
        return choice, k_rows, v_rows

    most = BLOCKS * (K + 1)                     # tokens that BLOCKS blocks bring; it may take more
    spec_lm.speculate(mdl, Wd, START, most, K, verify, draft)
    return entries[:BLOCKS]


def agreeing(guesses, choice):
    """How many guesses in front are what the target chose."""
    return max(a for a in range(len(guesses) + 1) if guesses[:a] == choice[:a])


def tokens_of(entries):
    """START and the tokens of all traced blocks."""
    return [START] + [token for entry in entries for token in entry["new"]]


def instruction_counts(code):
    """{instruction: how often it stands in the program}, in the order of the instruction set."""
    names = [ins["op"] for ins in code]
    return {name: names.count(name) for name in ga2_isa.INSTRUCTIONS if name in names}


def words_loaded(code):
    """Words that a program brings in from external memory."""
    return sum(ga2_isa.operands(ins)["len"] for ins in code if ins["op"] == "LD")


def mask(g):
    """What each row of a verifier's graph sees: {cached, rows: [{query, keys, values}]}.

    Read from the graph's slices: a range of rows is [first, how many], of the block for the query,
    of cache and block together for keys and values.
    """
    rows = []
    for node in g.nodes:
        if node.op == "softmax":
            query, keys = g.nodes[node.ins[0]].ins
            weighted, = g.consumers(node.id)
            _, values = g.nodes[weighted].ins
            rows.append({"query": slice_of(g, query), "keys": slice_of(g, keys),
                         "values": slice_of(g, values)})
    cached = [node.shape[0] for node in g.nodes if node.attrs.get("name") == "kc"]
    return {"cached": sum(cached), "rows": rows}


def slice_of(g, i):
    """[first row, number of rows] of the slice that is node i."""
    node = g.nodes[i]
    assert node.op == "slice", node
    return [node.attrs["start"], node.shape[0]]


def causality():
    """[{block, logits: the first SHOWN integers of each row}] of the model with sharp attention."""
    mdl = spec_tests.sharp_model()
    P = spec_tests.sharp_verifier(mdl)
    return [{"block": list(block),
             "logits": [row[:SHOWN] for row in spec_tests.sharp_logits(mdl, P, block)]}
            for block in CHANGED]


# ---- format --------------------------------------------------------------------------------------

def report(data):
    """Everything that is printed."""
    m = K + 1
    return "\n".join([
        f"1. Three blocks: random model {SEED}, {K} guesses, start {START}", "",
        format_trace(data), "",
        f"2. One block of {m} rows behind {CACHED} cached ones, and the {m} steps it stands for",
        "",
        format_cost(data), "",
        f"3. The first {SHOWN} logits of each row; only rows from the changed token on may differ",
        "", format_causality(data)]) + "\n"


def format_trace(data):
    rows = []
    for place, entries in (("float", data["trace"]), ("chip", data["chip_trace"])):
        for number, entry in enumerate(entries, 1):
            last, *guesses = entry["block"]
            rows.append((place, number, last, spaced(guesses), spaced(entry["choice"]),
                         entry["accepted"], spaced(entry["new"])))
    header = ("", "block", "last token", "guesses", "target's choices", "accepted", "new tokens")
    return "\n".join([
        cli.format_table(header, rows), "",
        f"plain decoding, float   {spaced(data['float_tokens'])}",
        f"three blocks, float     {spaced(tokens_of(data['trace']))}",
        f"three blocks, chip      {spaced(tokens_of(data['chip_trace']))}", "",
        "Where the two guess differently, two tokens are equally frequent in the draft's table,",
        "and the rounding of its int8 weights decides. The tokens are the target's all the same."])


def format_cost(data):
    counts = ", ".join(f"{count} {name}" for name, count in data["verify_instructions"].items())
    rows = [cost_row("one block", data["verify"], data["verify_words_loaded"])]
    for L, five, words in zip(data["contexts"], data["single"], data["single_words_loaded"]):
        rows.append(cost_row(f"step, context {L}", five, words))
    sums = [sum(column) for column in zip(*data["single"])]
    words = sum(data["single_words_loaded"])
    rows.append(cost_row(f"{len(data['single'])} steps", sums, words))
    header = ("program", "cycles", "matrix", "DMA", "vector", "instructions", "words loaded")
    return "\n".join([
        cli.format_table(header, rows), "",
        f"The block's instructions: {counts}.",
        f"It costs {data['verify'][0] / sums[0]:.2f} of the steps; {data['weight_words']:,} words "
        "of each program's loads are weights.",
        "Fetch and issue, 2 cycles an instruction, are in the first column only."])


def cost_row(name, five, words):
    total, matrix, dma, vector, instructions = five
    return (name, f"{total:,}", f"{matrix:,}", f"{dma:,}", f"{vector:,}", instructions,
            f"{words:,}")


def format_causality(data):
    rows = []
    for entry in data["causality"]:
        for i, logits in enumerate(entry["logits"]):
            before = data["causality"][0]["logits"][i]
            note = "-" if entry is data["causality"][0] else \
                "same" if logits == before else "differs"
            rows.append((spaced(entry["block"]), i, *logits, note))
    header = ("block", "row", *(f"logit {i}" for i in range(SHOWN)), "against the first block")
    return cli.format_table(header, rows)


def spaced(tokens):
    return " ".join(str(token) for token in tokens)


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments(argv)
    data = measure()
    text = report(data)
    cli.write_json(args.out / "ch16_example_a.json", data)
    cli.write_text(args.out / "ch16_example_a_out.txt", text)
    print(text, end="")
    return 0


def arguments(argv):
    parser = argparse.ArgumentParser(
        description="Running example A: trace three blocks and count what a block costs.")
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the outputs (default out/)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
