"""One-line faults in sampling: how far each bends the law, and what a test of samples sees.

    python3 tools/beyond/mut_sample.py [--list] [--only N ...] [--out DIR]

Every mutant runs against the counting tests of sampling, up to the first problem. Where a fault
bends the law, its report is the total variation from plain sampling and the numbers of samples at
which a chi-square test (1 % level) sees it. Results go to out/mut_sample.txt and .json.
"""

import paths

import re
import sys

import cli
import mutate
from mutate import Equivalent, Mutant

WORDS = "probabilities_tests.check_graphs"
REFUSALS = "probabilities_tests.check_errors"
DARTS = "chance_tests.check_darts"
CHOICES = "chance_tests.check_choices"
BLOCKS = "sample_lm_tests.check_blocks"
LAW = "sample_lm_tests.check_law"
SEEDED = "sample_lm_tests.check_seeded"
ROWS = "sample_lm_tests.check_rows"
WEIGHTS = "sample_lm_tests.check_weights"
CHECKS = (f"{WORDS}(range(30))", *(f"{name}()" for name in (
    REFUSALS, DARTS, CHOICES, LAW, BLOCKS, SEEDED, ROWS, WEIGHTS)))

CHANCE = "model/beyond/chance.py"
SAMPLE = "model/beyond/sample_lm.py"

MUTANTS = (
    # The chip's words
    Mutant("model/capra.py", "dst=self.address[node.id] + r * columns,\n"
           "                      src=self.address[node.ins[0]] + r * columns",
           "dst=self.address[node.id] + r * columns,\n"
           "                      src=self.address[node.ins[0]]",
           "program: every row is the softmax of the first", WORDS),
    Mutant("model/capra_scales.py", 'elif node.op == "probabilities":', "elif False:",
           "scales: the scores are not in sixteenths", WORDS),
    Mutant("model/capra_graph.py", "[ONE * p for p", "[p for p",
           "floating point: probabilities instead of words", WORDS),
    Mutant("model/capra_graph.py", '"probabilities": "its 17-bit words"', "",
           "refusal: the words are taken for int8", REFUSALS, expect="crash"),
    # Darts and numbers
    Mutant(CHANCE, "if height < weights[token]:", "if height <= weights[token]:",
           "draw: <= for <, so that weight 0 catches a dart", DARTS),
    Mutant(CHANCE, "if value < limit:", "if value <= limit:",
           "uniform: the limit itself comes out", CHOICES),
    Mutant(CHANCE, "        if value < limit:\n            return value",
           "        return value % limit",
           "uniform: numbers past the limit are folded back (modulo bias)", CHOICES),
    Mutant(CHANCE, "(limit - 1).bit_length()", "limit.bit_length() - 1",
           "uniform: a bit too few", CHOICES),
    Mutant(CHANCE, "numbers(self.seed, position, purpose)) < share",
           "numbers(self.seed, position, purpose)) <= share",
           "below: <= for <", CHOICES),
    Mutant(CHANCE, "if number < weight:", "if number <= weight:",
           "pick: <= for <", CHOICES),
    # Rejection
    Mutant(SAMPLE, "share, whole = w[guess] * sum(u), u[guess] * sum(w)",
           "share, whole = u[guess] * sum(w), max(1, w[guess] * sum(u))",
           "rejection: the ratio is turned round", LAW),
    Mutant(SAMPLE, "share, whole = w[guess] * sum(u), u[guess] * sum(w)",
           "share, whole = w[guess] * ONE, u[guess] * ONE",
           "rejection: both sums are taken as 65536", LAW),
    Mutant(SAMPLE, "max(0, w_j * sum(u) - u_j * sum(w))", "max(0, u_j * sum(w) - w_j * sum(u))",
           "recovery: q - p instead of p - q", LAW),
    Mutant(SAMPLE, "max(0, w_j * sum(u) - u_j * sum(w))", "w_j",
           "recovery: drawn from p itself", LAW),
    Mutant(SAMPLE, "max(0, w_j * sum(u) - u_j * sum(w))", "max(0, w_j - u_j)",
           "recovery: weights subtracted as if their sums were equal", LAW),
    Mutant(SAMPLE, "max(0, w_j * sum(u) - u_j * sum(w))",
           "max(0, w_j * sum(u) - u_j * sum(w)) if u_j else 0",
           "recovery: never a token that the draft gives weight 0", LAW),
    Mutant(SAMPLE, "targets[len(guesses)])]", "targets[max(0, len(guesses) - 1)])]",
           "free token: drawn from the row before", LAW),
    Mutant(SAMPLE, "        if not chance.below(", "        if i and not chance.below(",
           "rejection: the first guess is not checked", LAW),
    Mutant(SAMPLE, '"recover", residual(w, u))', '"accept", residual(w, u))',
           "recovery: with the random bits of the acceptance", LAW, expect="crash"),
    Mutant(SAMPLE, "weights = [ONE if token == guess else 0 for token in range(V)]",
           "weights = list(weights)",
           "likeliest token: treated as if it had been drawn", LAW),
    Mutant(SAMPLE, "drafts.append(weights)", "drafts.append([w // 2 + 1 for w in weights])",
           "draft: its guesses are judged by other weights than they were drawn from", LAW),
    Mutant(SAMPLE, "guesses[:i] + [chance.pick(", "guesses[:i + 1] + [chance.pick(",
           "rejection: the refused guess is kept as well", LAW),
    # Seeded
    Mutant(SAMPLE, "new.append(chance.draw(position + i, weights))",
           "new.append(chance.draw(i, weights))",
           "seeded: darts by row of the block", LAW),
    Mutant(SAMPLE, "new.append(chance.draw(position + i, weights))",
           "new.append(chance.draw(position + i + 1, weights))",
           "seeded: darts of the position behind", SEEDED),
    Mutant(CHANCE, "        return draw(weights, darts(self.seed, position))",
           "        self.calls = getattr(self, 'calls', 0) + 1\n"
           "        return draw(weights, darts(self.seed, self.calls))",
           "seeded: darts by how often was drawn", SEEDED),
    Mutant(SAMPLE, "if new[:i + 1] != guesses[:i + 1]:", "if new[:i] != guesses[:i]:",
           "seeded: a choice behind a refused guess is kept", LAW),
    Mutant(SAMPLE, "kc + k_rows[:len(new)]", "kc + k_rows[:len(new) - 1]",
           "cache: the last kept row is lost", SEEDED, expect="crash"),
    # The chip's programs
    Mutant(SAMPLE, "g.causal_softmax(scores, c + 1)", "g.causal_softmax(scores, max(c, 1))",
           "sampler: a row does not see itself", LAW),
    Mutant(SAMPLE, 'W["Wout"], scale=1 / temperature', 'W["Wout"], scale=temperature',
           "sampler: logits times T", WEIGHTS),
)

EQUIVALENTS = (
    Equivalent(SAMPLE, 'g.weight("Wd", Wd), scale=1 / temperature', 'g.weight("Wd", Wd), scale=1.0',
               "draft: another temperature than the target's",
               "the draft may have any distribution: guesses are judged by the weights they were "
               "drawn from, and only fewer are kept"),
    Equivalent(SAMPLE, "            return chance.draw(position, weights)",
               "            return chance.draw(-position, weights)",
               "draft, seeded: guesses with darts of their own",
               "a guess may be any token; with other darts than the target's fewer are kept"),
    Equivalent(SAMPLE, "[PRIOR] * V", "[2 * PRIOR] * V",
               "draft: fitted with another prior",
               "the draft may have any distribution"),
)


def closing(rows):
    """By how much each fault bends the law, and how many a test of samples would have missed."""
    bent = [(row, found.groups()) for row in rows
            for found in [re.search(r"total variation (\S+); chi-square (.*)", row["report"])]
            if found]
    lines = ["", "The law's total variation from plain sampling, and a chi-square test beside it:"]
    for row, (variation, said) in bent:
        lines.append(f"{row['number']:3}  {variation:<8}  {said:<34}  {row['fault']}")
    for count in (1000, 10000, 100000):
        missed = sum(str(count) not in said.replace(",", "").split() for _, (_, said) in bent)
        lines.append(f"At {count:,} samples the chi-square test misses {missed} of {len(bent)}.")
    return "\n".join(lines + [""])


def main(argv=None):
    return mutate.run("mut_sample", MUTANTS, EQUIVALENTS, ["model", "tools"],
                      mutate.python_checks(CHECKS), argv, closing=closing)


if __name__ == "__main__":
    sys.exit(cli.run(main))
