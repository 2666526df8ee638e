"""Tests of the tree verifier: its programs, the host's loop, whole runs, refusals.

Its parts, each of which returns its problems:

1. check_chains   a chain's program is the batched verifier's, instruction by instruction
2. check_proof    each row of a small tree has the terms of the plain step behind its ancestors
   check_unproved and that of another tree has not
3. check_numbers  the same in integers, for larger trees and siblings far apart
4. check_host     on every tree of up to 5 rows the host keeps the accepted path, wherever it leads
5. check_tokens   runs on the chip give the plain tokens; the books balance; every entry replays
6. check_errors   what is no tree, or has no room, is refused
"""

import random
import unittest

import paths
import capra
import spec_lm
import spec_tests
import tree_proof
from exact_lm import ExactChip
from fast_lm import build_batched
from ga2_isa import Machine
from tiny_lm import V, make_model, step_inputs
from tree_lm import (TreeChip, accepted_path, build_tree, chain, chances_at, check_block, decode,
                     play)
from tree_plan import Planner
from tree_proof import all_trees, random_tree

FORK = (None, 0, 0)                             # the chapter's two alternatives for the first guess
PROVED = [(c, parents) for c in (0, 3) for m in range(1, 5) for parents in all_trees(m)]


def new_chip(mdl, n=12, rows=8, noise=0, share=None):
    return TreeChip(mdl, spec_lm.make_draft(mdl, noise, 1), n, rows, range(V), share)


# ---- 1 -------------------------------------------------------------------------------------------

def check_chains():
    """Nothing is dearer in a tree that is none."""
    chip = new_chip(make_model())
    for c, m in ((0, 1), (0, 4), (5, 3), (12, 8)):
        if chip.program(c, chain(m)).code != chip.plan.program(build_batched, m, c).code:
            yield f"check_chains: {m} rows behind {c} are another program than the batched"


# ---- 2 -------------------------------------------------------------------------------------------

def check_proof(trees=PROVED):
    """For all inputs."""
    for problem in tree_proof.unproved(new_chip(make_model("random", 1)), trees):
        yield f"check_proof: {problem}"


def check_unproved():
    """Programs of other trees are not proved; the first fault is named."""
    chip = new_chip(make_model("random", 1))
    for parents, other in ((FORK, chain(3)), (chain(3), FORK), ((None, 0, 0, 1), (None, 0, 0, 2)),
                           ((None, 0, 1, 0, 3), (None, 0, 1, 0, 1))):
        right = chip.program(2, parents)
        chip.plan.programs[build_tree, parents, 2] = chip.program(2, other)
        row = next(row for row, (one, two) in enumerate(zip(parents, other)) if one != two)
        wanted = [f"the tree {list(parents)} behind 2: {output} of row {row} is not what the step "
                  "behind its ancestors computes" for output in ("logits", "tok")]
        found = tree_proof.unproved(chip, [(2, parents)])
        if found != wanted:
            yield f"check_unproved: {parents} with the program of {other}: {found}"
        chip.plan.programs[build_tree, parents, 2] = right


# ---- 3 -------------------------------------------------------------------------------------------

def check_numbers():
    """A sharp model, trees of 7 to 12 rows: each row against the plain steps of its own text."""
    mdl = spec_tests.sharp_model()
    chip = new_chip(mdl)
    R = random.Random(4)
    for c, m in ((0, 7), (2, 9), (5, 12), (9, 8)):
        text = [R.randrange(V) for _ in range(c)]
        kc, vc = cache_of(chip, text)
        parents = random_tree(R, m)
        toks = [R.randrange(V) for _ in range(m)]
        got = capra.run(chip.program(c, parents),
                        step_inputs([mdl["E"][token] for token in toks], kc, vc))
        for row in range(m):
            plain = plain_step(chip, text + [toks[i] for i in way(parents, row)])
            for output in ("logits", "tok", "k_new", "v_new"):
                if got[output][0][row] != plain[output][0][0]:
                    yield (f"check_numbers: row {row} of {list(parents)} behind {c}: {output} is "
                           "not the plain step's")


def way(parents, row):
    """The rows from the root to `row`."""
    rows = [row]
    while parents[rows[0]] is not None:
        rows.insert(0, parents[rows[0]])
    return rows


def cache_of(chip, text):
    """(kc, vc) behind the tokens of `text`, from plain steps."""
    kc, vc = [], []
    for position, token in enumerate(text):
        out = capra.run(chip.plan.step(position + 1), step_inputs([chip.m["E"][token]], kc, vc))
        kc, vc = kc + out["k_new"][1], vc + out["v_new"][1]
    return kc, vc


def plain_step(chip, text):
    """The outputs of the plain step for the last token of `text`."""
    kc, vc = cache_of(chip, text[:-1])
    return capra.run(chip.plan.step(len(text)), step_inputs([chip.m["E"][text[-1]]], kc, vc))


# ---- 4 -------------------------------------------------------------------------------------------

def check_host():
    """Row i holds the token i; the target's choices lead to each node once, then to 15.

    Keys are texts, values the same backwards: the next block must find those of the tokens so far,
    in order, and nothing else.
    """
    for parents in (tree for m in range(1, 6) for tree in all_trees(m)):
        for end in range(len(parents)):
            wanted = way(parents, end)
            follow = dict(zip(wanted, wanted[1:]))
            caches = []

            def verify(c, tree, toks, kc, vc):
                caches.append((c, kc, vc))
                texts = [[0] * c + [toks[i] for i in way(tree, row)] for row in range(len(tree))]
                return ([follow.get(token, 15) for token in toks], texts,
                        [text[::-1] for text in texts])

            blocks = [(parents, list(range(1, len(parents)))), ((None,), [])]
            tokens, stats = decode(0, len(wanted) + 1, verify,
                                   lambda tokens: blocks[min(len(caches), 1)])
            texts = [wanted[:i + 1] for i in range(len(wanted))]
            faults = {
                "the tokens": tokens == wanted + [15, 15],
                "the cache": caches[1:] == [(len(wanted), texts, [text[::-1] for text in texts])],
                "the statistics": stats == {"blocks": 2, "proposed": len(parents) - 1,
                                            "accepted": len(wanted) - 1,
                                            "emitted": len(wanted) + 1, "cache": len(wanted) + 1},
            }
            for what, holds in faults.items():
                if not holds:
                    yield f"check_host: {list(parents)} accepted up to row {end}: {what} are wrong"


# ---- 5 -------------------------------------------------------------------------------------------

def check_tokens():
    """13 tokens with good and bad drafts: some blocks accept a path that is no prefix."""
    n = 13
    scattered = 0
    for kind, seed, noise in (("structured", 1, 4), ("structured", 1, 6), ("random", 3, 0)):
        mdl = make_model(kind, seed)
        chip = new_chip(mdl, n, 8, noise)
        for start in (0, 7):
            where = f"check_tokens: {kind} {seed}, noise {noise}, start {start}"
            plain, _ = chip.plain(start, n)
            tokens, stats, log = chip.generate(start, n)
            log = list(log)                     # asking again adds to it
            if tokens != plain:
                yield f"{where}: tokens {tokens}, not {plain}"
                continue
            blocks = [entry for entry in log if entry["kind"] == "verify"]
            for entry in blocks:
                P = chip.program(entry["c"], entry["parents"])
                ran = Machine(entry["ext"]).run(entry["code"])
                choice = [row[0] for row in capra.read_outputs(P, ran)["tok"][0]]
                path = accepted_path(entry["parents"], entry["tokens"], choice)
                scattered += path != list(range(len(path)))
                c = entry["c"]
                new = [entry["tokens"][row] for row in path] + [choice[path[-1]]]
                if plain[c:c + len(new)] != new:
                    yield f"{where}: the entry behind {c} replays to {new}"
            planner = Planner(n, 8, chip.chances(start), chip.costs)
            said = play(chip.plain(start, n + 8)[0], n, planner, chip.cost)
            if said != (stats, spec_lm.cycles_of(blocks)):
                yield f"{where}: without the chip {said}, on it {stats} and other cycles"
            rules = {
                "emitted": stats["emitted"] == n == stats["cache"],
                "accepted": stats["accepted"] == n - len(blocks),
                "proposed": stats["proposed"] == sum(entry["m"] - 1 for entry in blocks),
                "blocks": stats["blocks"] == len(blocks),
                "table": [entry["kind"] for entry in log].count("table") == 1,
            }
            for name, holds in rules.items():
                if not holds:
                    yield f"{where}: {name} does not hold in {stats}"
    if scattered < 3:
        yield f"check_tokens: {scattered} accepted paths were scattered; this tests nothing"


# ---- 6 -------------------------------------------------------------------------------------------

REFUSED = {
    "a parent that comes later": (
        lambda chip: chip.program(0, [None, 2, 0]),
        "row 1 of the tree has the parent 2; it must be an earlier row, 0 to 0"),
    "a parent that is itself": (
        lambda chip: chip.program(0, [None, 0, 2]),
        "row 2 of the tree has the parent 2; it must be an earlier row, 0 to 1"),
    "a parent that is not there": (
        lambda chip: chip.program(0, [None, 0, -1]),
        "row 2 of the tree has the parent -1; it must be an earlier row, 0 to 1"),
    "a parent that is no row": (
        lambda chip: chip.program(0, [None, True]),
        "row 1 of the tree has the parent True; it must be an earlier row, 0 to 0"),
    "two roots": (
        lambda chip: chip.program(0, [None, 0, None]),
        "row 2 of the tree has no parent; row 0 alone is a root"),
    "no root": (
        lambda chip: chip.program(0, [0, 1]),
        "parents = (0, 1): row 0 is the last token, the root; its parent must be None"),
    "no row": (
        lambda chip: chip.program(0, []),
        "parents = (): row 0 is the last token, the root; its parent must be None"),
    "more rows than the scratchpad holds": (
        lambda chip: chip.program(30, (None,) + (0,) * 20),
        "a tree of 21 rows behind 30: a temporary of matmul 15 needs 1071 words of scratchpad; the "
        "largest free block has 465 of 4096 (give it fewer rows)"),
    "a tree past token 64": (
        lambda chip: chip.program(60, FORK + (0, 0)),
        "a tree of 5 rows behind 60: its attention would sum over 65 rows of values; the chip "
        "multiplies at most 64 (give it at most 4 rows)"),
    "a run past token 64": (
        lambda chip: chip.generate(0, 65),
        "token 65: its attention would sum over 65 rows of values; the chip multiplies at most 64 "
        "(end the run at 64 tokens)"),
    "two children with one token": (
        lambda chip: check_block((None, 0, 0), [3, 7, 7]),
        "rows 1 and 2 of the tree are both the token 7 after row 0; give different alternatives"),
    "a guess that is no token": (
        lambda chip: check_block((None, 0), [3, 16]),
        "row 1 of the tree: 16 is not a token; tokens are 0 to 15"),
    "a token too few": (
        lambda chip: check_block((None, 0), [3]),
        "the tree has 2 rows and 1 tokens; give one a row"),
    "no rows at all": (
        lambda chip: TreeChip(chip.m, chip.Wd, 4, 0, share=chip),
        "rows = 0 must be an integer, 1 or more"),
    "rows that are no number": (
        lambda chip: TreeChip(chip.m, chip.Wd, 4, "8", share=chip),
        "rows = '8' must be an integer, 1 or more"),
    "a start that is no token": (
        lambda chip: chip.generate(16, 4),
        "start 16 is not a token; tokens are 0 to 15"),
    "n below 0": (
        lambda chip: chip.generate(0, -1),
        "n = -1 must be an integer, 0 or more"),
}


def check_errors():
    """Bad input that was accepted, or refused in other words."""
    chip = new_chip(make_model())
    for name, (ask, message) in REFUSED.items():
        try:
            ask(chip)
            said = "accepted"
        except ValueError as error:
            said = str(error)
        if said != message:
            yield f"check_errors: {name}: {said}"


# ---- tests ---------------------------------------------------------------------------------------

class Tree(unittest.TestCase):
    def test_a_chain_is_the_batched_verifier(self):
        self.assertEqual(list(check_chains()), [])

    def test_every_small_tree_is_proved_for_all_inputs(self):
        self.assertEqual(list(check_proof()), [])

    def test_larger_trees_are_the_plain_steps_in_integers(self):
        self.assertEqual(list(check_numbers()), [])

    def test_the_host_keeps_the_accepted_path_of_every_small_tree(self):
        self.assertEqual(list(check_host()), [])

    def test_runs_give_the_plain_tokens(self):
        self.assertEqual(list(check_tokens()), [])

    def test_bad_input_is_refused_in_these_words(self):
        self.assertEqual(list(check_errors()), [])


class Proof(unittest.TestCase):
    """The proof fails where a row is not the plain step's, and names it."""

    def test_the_program_of_another_tree_is_found(self):
        self.assertEqual(list(check_unproved()), [])

    def test_trees_of_up_to_16_rows_are_proved(self):
        R = random.Random(7)
        trees = [(R.randrange(20), random_tree(R, m)) for m in (7, 9, 12, 14, 16)]
        self.assertEqual(list(check_proof(trees)), [])

    def test_there_are_154_trees_of_up_to_6_rows(self):
        trees = [parents for m in range(1, 7) for parents in all_trees(m)]
        self.assertEqual((len(trees), len(set(trees))), (154, 154))


class Draft(unittest.TestCase):
    def test_its_table_holds_the_logits_of_its_own_program(self):
        mdl = make_model("random", 2)
        chip = new_chip(mdl, 4)
        for row, x in zip(chip.draft_logits(), mdl["E"]):
            self.assertEqual(row, capra.run(chip.dprog, {"x": [x]})["logits"][1][0])

    def test_its_chances_are_fitted_without_the_run_at_hand(self):
        chip = new_chip(make_model(), 4)
        chip.draft_logits = lambda: [[2.0 * (j == t) for j in range(V)] for t in range(V)]
        chip.runs = {0: [0, 0, 0], 1: [1, 2, 3], 2: [2, 3, 4]}
        sure, unsure = (chances_at(chip.draft_logits(), one) for one in (0.5, 16))
        self.assertEqual(chip.chances(0), unsure)
        chip.runs = {0: [1, 2, 3], 1: [1, 1, 1]}
        self.assertEqual((chip.chances(0), chip.chances(1)), (sure, unsure))

    def test_the_programs_are_shared_with_any_chip_of_the_model(self):
        mdl = make_model()
        exact = ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), 4, 1)
        chip = TreeChip(mdl, exact.Wd, 4, 4, share=exact)
        self.assertIs(chip.plan, exact.plan)
        self.assertIs(TreeChip(mdl, exact.Wd, 4, 2, share=chip).program(1, FORK),
                      chip.program(1, list(FORK)))


if __name__ == "__main__":
    unittest.main()
