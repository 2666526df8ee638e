"""The proof of exact_proof for batches: each row is the plain step of its own sequence.

Sequences 0, 1 and 2 have inputs of their own, ("x", (sequence, position), column). So a row that
holds one word of a neighbour, of its cache or of a later token is another term than the plain step
at its position, for all inputs at once.

    alone    The plain steps of each sequence run first, on its own x and its own cache.
    company  A batch program runs on each sequence's x and on the cache that its own steps left.
             The rows of each must be the terms of those steps. The host's part, batch_inputs and
             batch_answers, is run on terms as well.

A mix is what a pass may hold, ((c, m), ..): m rows behind c cached ones of each sequence, in order.
"""

import itertools

from batch_lm import batch_answers, batch_inputs
from exact_proof import CROSSING, OUTPUTS, Terms, not_returning, outputs
from tiny_lm import D

ROWS = (1, 2, 3, 4)
CACHES = (0, 1, 3, 12)
WIDEST = 3                                      # sequences in a mix
SHAPES = tuple(itertools.product(CACHES, ROWS))
MIXES = [mix for B in range(1, WIDEST + 1) for mix in itertools.product(SHAPES, repeat=B)]


def unproved(chip, mixes):
    """Sentences on batch programs of `chip`, a BatchChip, with a row that is not its plain step."""
    terms = Terms()
    first = chip.plan.step(1)
    problems = not_returning(first)
    widest = max(len(mix) for mix in mixes)
    longest = max(c + m for mix in mixes for c, m in mix)
    E = {(s, position): [terms.number("x", (s, position), column) for column in range(D)]
         for s in range(widest) for position in range(longest)}
    steps = [plain_steps(chip.plan, terms, E, s, longest) for s in range(widest)]
    for mix in mixes:
        P = chip.batch_program(mix)
        problems += other_scales(P, first, mix)
        for s, rows in enumerate(batch_rows(P, terms, E, mix, steps)):
            c, m = mix[s]
            for name in OUTPUTS:
                wrong = [i for i in range(m) if rows[name][i] != steps[s][name][c + i]]
                if wrong:
                    problems.append(f"{mix}: {name} of sequence {s}, row {wrong[0]}, is not what "
                                    f"its own step at position {c + wrong[0]} computes")
    return problems


def plain_steps(plan, terms, E, s, length):
    """{output: rows of terms} of the plain steps of sequence s, a row for each position."""
    steps = {name: [] for name in OUTPUTS}
    for position in range(length):
        inputs = {"x": [E[s, position]], "kc": steps["k_new"], "vc": steps["v_new"]}
        step = outputs(plan.step(position + 1), terms, inputs)
        for name in OUTPUTS:
            steps[name] = steps[name] + step[name]
    return steps


def batch_rows(P, terms, E, mix, steps):
    """[{output: rows of terms}] of each sequence in program `P`, run behind the steps' caches."""
    blocks = [([(s, position) for position in range(c, c + m)],
               steps[s]["k_new"][:c], steps[s]["v_new"][:c]) for s, (c, m) in enumerate(mix)]
    out = outputs(P, terms, batch_inputs({"E": E}, blocks))
    answers = batch_answers({name: (rows, rows) for name, rows in out.items()},
                            [m for _, m in mix])
    return [{"tok": [[choice] for choice in choices], "k_new": k_rows, "v_new": v_rows,
             "logits": logits} for choices, k_rows, v_rows, logits in answers]


def other_scales(P, first, mix):
    """Sentences on tensors of `P` that cross the host in other steps than in the plain step."""
    problems = []
    for name, entry in P.ext.items():
        source = CROSSING.get(name.split()[0])
        if source and P.scale[entry["node"]] != first.scale[first.ext[source]["node"]]:
            problems.append(f"{mix}: the scale of {name} is not that of the plain step")
    return problems
