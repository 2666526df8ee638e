"""One-line faults in part_rows and in the batch: do their tests notice?

    python3 tools/beyond/mut_batch.py [--list] [--only N ...] [--out DIR]

Every mutant runs against the battery of part_rows and the tests of the batch, part by part, up to
the first problem. Results go to out/mut_batch.txt and .json.
"""

import sys

import paths
import cli
import mutate
from mutate import Equivalent, Mutant

GRAPHS = "part_tests.check_graphs"
APART = "part_tests.check_apart"
JUNK = "part_tests.check_junk"
ERRORS = "part_tests.check_errors"
PROOF = "batch_lm_tests.check_proof"
COMPANY = "batch_lm_tests.check_company"
LOADS = "batch_lm_tests.check_loads"
CHECKS = tuple(f"{name}(range(30))" for name in (GRAPHS, APART, JUNK)) + tuple(
    f"{name}()" for name in (ERRORS, PROOF, COMPANY, LOADS))

GRAPH = "model/capra_graph.py"
FILE = "model/beyond/batch_lm.py"

MUTANTS = (
    # part_rows: the graph, its meaning, its scale
    Mutant(GRAPH, '        if self.nodes[a].op != "matmul":\n'
           '            raise CompileError(f"part_rows',
           '        if self.nodes[a].op == "argmax":\n'
           '            raise CompileError(f"part_rows',
           "refusal: a part of anything is accepted", ERRORS),
    Mutant(GRAPH, 'others = [i for i in self.consumers(a) if self.nodes[i].op != "part"]',
           "others = []", "refusal: a whole that somebody read before", ERRORS),
    Mutant(GRAPH, 'if self.in_parts(i) and operation != "part_rows":', "if False:",
           "refusal: a whole that is only there in parts", ERRORS),
    Mutant("model/capra_run.py",
           'return rows if node.op == "slice" else _rescale(rows, P.params[node.ins[0]])',
           "return rows", "interpreter: a part keeps its sums", GRAPHS),
    Mutant("model/capra_scales.py", '"slice", "part", "output")', '"slice", "output")',
           "scales: a part's scale is not the product's", GRAPHS, expect="crash"),
    # part_rows: instructions
    Mutant("model/capra.py", 'node.attrs["start"] * node.shape[1]\n        self.requantize',
           "0\n        self.requantize",
           "program: every part is the first rows", GRAPHS),
    Mutant("model/capra.py", "        if in_parts:\n            return []\n",
           "        if in_parts:\n            return [accumulators]\n",
           "program: the sums are given back before the parts are made", GRAPHS, expect="crash"),
    # The batch's program
    Mutant(FILE, "g.part_rows(k_new, row, m)", "g.part_rows(k_new, 0, m)",
           "keys: everybody gets the first sequence's rows", PROOF),
    Mutant(FILE, "g.part_rows(v_new, row, m)", "g.part_rows(v_new, 0, m)",
           "values: everybody gets the first sequence's rows", PROOF),
    Mutant(FILE, "g.slice_rows(q, row, m)", "g.slice_rows(q, 0, m)",
           "queries: everybody asks the first sequence's", PROOF),
    Mutant(FILE, "g.causal_softmax(scores, c + 1)", "g.softmax(scores)",
           "mask: a row sees its block's later rows", PROOF),
    Mutant(FILE, "g.concat_rows(attn, own)", "g.concat_rows(own, attn)",
           "attention: the sequences' rows come out in the other order", PROOF, expect="crash"),
    Mutant(FILE, "choices = [index for index, in outputs[\"tok\"][0][row:row + m]]",
           "choices = [index for index, in outputs[\"tok\"][0][:m]]",
           "answers: everybody gets the first sequence's choices", PROOF),
    Mutant(FILE, '                        outputs["logits"][1][row:row + m]))\n        row += m',
           '                        outputs["logits"][1][row:row + m]))\n        row += sizes[0]',
           "answers: ragged blocks taken as equally long", PROOF),
    # The cache
    Mutant(FILE, 'inputs[f"kc {s}"], inputs[f"vc {s}"] = kc, vc',
           'inputs[f"kc {s}"], inputs[f"vc {s}"] = kc, blocks[s - 1][2][:len(vc)]',
           "cache: a sequence reads its neighbour's values", PROOF, expect="crash"),
    Mutant(FILE, 'inputs[f"kc {s}"], inputs[f"vc {s}"] = kc, vc',
           'inputs[f"kc {s}"], inputs[f"vc {s}"] = kc[-1:] + kc[:-1], vc',
           "cache: its rows are turned", PROOF),
    Mutant(FILE, "inputs = batch_inputs(self.m, [(block, one.kc, one.vc)",
           "longest = max(len(one.kc) for one in running)\n"
           "        for one in running:\n"
           "            one.kc = [[0.0] * D] * (longest - len(one.kc)) + one.kc\n"
           "            one.vc = [[0.0] * D] * (longest - len(one.vc)) + one.vc\n"
           "        shapes = tuple((longest, m) for _, m in shapes)\n"
           "        P = self.batch_program(shapes, [one.request for one in running])\n"
           "        inputs = batch_inputs(self.m, [(block, one.kc, one.vc)",
           "cache: ragged ones are padded in front, and the padding is seen", COMPANY),
    Mutant(FILE, "one.kc, one.vc = one.kc + k_rows, one.vc + v_rows",
           "one.kc, one.vc = one.kc + k_rows, running[0].vc + v_rows",
           "cache: kept values go behind the first sequence's", COMPANY),
    # The host loop
    Mutant(FILE, "running.append(waiting.pop(0))",
           "running.append(waiting.pop(0))\n"
           "            running[-1].kc, running[-1].vc = running[0].kc, running[0].vc",
           "slot: a newcomer reads the cache of the one before", LOADS),
    Mutant(FILE, "running = [one for one in running if one.wanted() > 0]",
           "running = [one for one in running if one.wanted() > -1]",
           "end: a finished sequence's row is still counted", LOADS),
    Mutant(FILE, "zip(running, blocks, verify(running, blocks))",
           "zip(running, blocks, verify(running, blocks)[::-1])",
           "answers: two sequences get each other's", COMPANY, expect="crash"),
    Mutant(FILE, "guess_block(one.tokens[-1],", "guess_block(running[0].tokens[-1],",
           "block: it starts from the first sequence's last token", COMPANY),
    Mutant(FILE, "one.guesses(one.wanted(), (), 0)",
           "one.guesses(running[0].wanted(), (), 0)",
           "block: as many guesses as the first sequence wants", LOADS),
    Mutant(FILE, "while waiting and len(running) < slots:",
           "while waiting and len(running) <= slots:",
           "slots: one too many in a pass", LOADS),
)

EQUIVALENTS = (
    Equivalent(FILE, "draft_after(one.tokens)", "draft_after(running[0].tokens)",
               "draft: it is asked behind the first sequence's tokens",
               "the table answers by the token alone, whatever stood in front"),
    Equivalent(FILE, "running.append(waiting.pop(0))", "running.insert(0, waiting.pop(0))",
               "slots: a newcomer goes in front",
               "no row depends on the company or its order"),
)


def main(argv=None):
    return mutate.run("mut_batch", MUTANTS, EQUIVALENTS, ["model", "tools"],
                      mutate.python_checks(CHECKS), argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
