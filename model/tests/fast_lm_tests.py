"""Tests of the faster decoder: verifier, draft's table, clipping.

Its parts, each of which returns its problems:

1. check_blocks    the batched verifier's outputs are the chapter's, integer by integer
2. check_tokens    the tokens are the plain ones under all combinations of options; books balance
3. check_table     the table's answers are those of the draft's own program
"""

import itertools
import random
import unittest

import paths
import capra
import spec_lm
import spec_tests
from exact_lm import ExactChip
from fast_lm import FastChip, build_batched, compile_draft_table, decode
from ga2_isa import Machine, cycle_counts
from host_lm import TableChip
from lookup_lm import LookupChip
from pair_lm import PairChip
from tiny_lm import V, float_generate, make_model, step_inputs

OPTIONS = ("batched", "table", "clip")
PLAIN_CYCLES = 268346                           # 32 tokens, one by one


# ---- 1 -------------------------------------------------------------------------------------------

def check_blocks():
    """For random caches and blocks, tok, logits, k_new and v_new are the chapter's verifier's."""
    for name, mdl in (("structured", make_model()), ("sharp", spec_tests.sharp_model())):
        chapter = ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), 12, 3)
        fast = FastChip(mdl, chapter.Wd, 12, 3, share=chapter)
        R = random.Random(5)
        for m, c in ((1, 0), (1, 3), (2, 5), (4, 0), (4, 12), (5, 3), (8, 2)):
            cache = [R.randrange(V) for _ in range(c)]
            kc, vc = spec_tests.float_cache(mdl, cache) if cache else ([], [])
            x = [mdl["E"][R.randrange(V)] for _ in range(m)]
            one, two = (capra.run(chip._vprog(c, m), step_inputs(x, kc, vc))
                        for chip in (chapter, fast))
            for output in ("tok", "logits", "k_new", "v_new"):
                if one[output] != two[output]:
                    yield f"check_blocks: {name}, {m} rows behind {c}: {output} differs"


# ---- 2 -------------------------------------------------------------------------------------------

def check_tokens():
    """13 tokens from token 3 under every combination of options."""
    n, start = 13, 3
    for name, kind, noise in (("structured", "structured", 3), ("random 1", "random", 0)):
        mdl = make_model(kind)
        exact = ExactChip(mdl, spec_lm.make_draft(mdl, noise, 1), n, 3)
        plain, _ = exact.plain(start, n)
        for flags in itertools.product((False, True), repeat=3):
            options = dict(zip(OPTIONS, flags))
            for k in (1, 4):
                chip = FastChip(mdl, exact.Wd, n, k, share=exact, **options)
                where = f"check_tokens: {name}, k = {k}, {options}"
                tokens, stats, log = chip.generate(start, n)
                if tokens != plain:
                    yield f"{where}: tokens {tokens}, not {plain}"
                for fault in unbalanced(n, k, options, stats, log):
                    yield f"{where}: {fault} does not hold in {stats}"


def unbalanced(n, k, options, stats, log):
    """The rules of bookkeeping that a run of n tokens breaks."""
    kinds = [entry["kind"] for entry in log]
    shapes = [(entry["c"], entry["m"]) for entry in log if entry["kind"] == "verify"]
    rules = {
        "accepted <= proposed": stats["accepted"] <= stats["proposed"],
        "proposed = rows - blocks": stats["proposed"] == sum(m - 1 for _, m in shapes),
        "emitted = accepted + blocks": stats["emitted"] == stats["accepted"] + stats["blocks"],
        "blocks = verifier programs": stats["blocks"] == len(shapes),
        "one table, at the start": kinds.count("table") == options["table"]
                                   and (kinds[0] == "table") == options["table"],
        "a program per guess without it": kinds.count("draft") == (0 if options["table"]
                                                                   else stats["proposed"]),
    }
    if options["clip"]:
        rules["emitted = n"] = stats["emitted"] == n
        rules["m = min(k, wanted - 1) + 1"] = all(m == min(k, n - c - 1) + 1 for c, m in shapes)
    else:
        rules["m = k + 1"] = all(m == k + 1 for _, m in shapes)
    return [rule for rule, holds in rules.items() if not holds]


# ---- 3 -------------------------------------------------------------------------------------------

def check_table():
    """16 answers in one program, the very ones of 16 programs."""
    for name, kind, noise in (("structured", "structured", 4), ("random 1", "random", 0)):
        mdl = make_model(kind)
        chip = FastChip(mdl, spec_lm.make_draft(mdl, noise, 1), 2, 1)
        table = chip.draft_table()
        for tok in range(V):
            if table[tok] != chip.draft(tok):
                yield f"check_table: {name}: {table[tok]} after {tok}, alone {chip.draft(tok)}"


# ---- tests ---------------------------------------------------------------------------------------

class Exact(unittest.TestCase):
    def test_batched_blocks_are_the_chapters(self):
        self.assertEqual(list(check_blocks()), [])

    def test_tokens_are_the_plain_ones_under_all_options(self):
        self.assertEqual(list(check_tokens()), [])

    def test_the_table_holds_the_drafts_own_answers(self):
        self.assertEqual(list(check_table()), [])

    def test_a_plan_does_not_depend_on_the_options(self):
        mdl = make_model()
        exact = ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), 4, 1)
        exact._vprog(0, 2)
        fast = FastChip(mdl, exact.Wd, 4, 1, share=exact)
        chapter = FastChip(mdl, exact.Wd, 4, 1, share=exact, batched=False)
        self.assertIs(fast.plan, exact.plan)
        self.assertIs(chapter._vprog(0, 2), exact._vprog(0, 2))
        self.assertIsNot(fast._vprog(0, 2), exact._vprog(0, 2))


class Logs(unittest.TestCase):
    """What a log holds is what ran: each entry, run again, gives the answer the host used."""

    def test_every_entry_replays_to_its_answer(self):
        mdl = make_model("random", 2)
        exact = ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), 12, 3)
        for chip in (exact, FastChip(mdl, exact.Wd, 12, 3, share=exact),
                     FastChip(mdl, exact.Wd, 12, 3, share=exact, table=False)):
            tokens, _, log = chip.generate(4, 12)
            kinds = {entry["kind"] for entry in log}
            self.assertIn("verify", kinds)
            self.assertTrue(kinds & {"draft", "table"})
            for entry in log:
                after = Machine(entry["ext"]).run(entry["code"]).ext
                if entry["kind"] == "verify":
                    tok = chip._vprog(entry["c"], entry["m"]).ext["tok"]["addr"]
                    self.assertEqual(after[tok], tokens[entry["c"] + 1])
                elif entry["kind"] == "table":
                    tok = compile_draft_table(mdl, exact.Wd).ext["tok"]["addr"]
                    self.assertEqual(after[tok:tok + V], [exact.draft(t) for t in range(V)])

    def test_every_chip_refuses_the_same_starts_and_counts(self):
        mdl = make_model("random", 2)
        Wd = spec_lm.make_draft(mdl, 0, 1)
        for make in (lambda *rest: ExactChip(mdl, Wd, *rest),
                     lambda *rest: FastChip(mdl, Wd, *rest), lambda *rest: PairChip(mdl, *rest),
                     lambda *rest: TableChip(mdl, *rest), lambda *rest: LookupChip(mdl, *rest)):
            for rest, message in (
                    ((4, 1, ()), "there is no start to calibrate on; give at least one token"),
                    ((4, 1, (3, 16)), "start 16 is not a token; tokens are 0 to 15"),
                    ((-1, 1), "n = -1 must be an integer, 0 or more"),
                    ((4, -1), "k = -1 must be an integer, 0 or more"),
                    ((4, True), "k = True must be an integer, 0 or more")):
                with self.assertRaises(ValueError) as caught:
                    make(*rest)
                self.assertEqual(str(caught.exception), message)
            chip = make(4, 1, (0,))
            for start, n, message in ((True, 2, "start True is not a token; tokens are 0 to 15"),
                                      (0, -2, "n = -2 must be an integer, 0 or more")):
                for generate in (chip.generate, chip.plain):
                    with self.assertRaises(ValueError) as caught:
                        generate(start, n)
                    self.assertEqual(str(caught.exception), message)


class Cycles(unittest.TestCase):
    """Figures of a cost model that was made without these programs."""

    @classmethod
    def setUpClass(cls):
        mdl = make_model()
        cls.exact = ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), 32, 3)
        cls.fast = FastChip(mdl, cls.exact.Wd, 32, 3, share=cls.exact)

    def speedup(self, k, **options):
        chip = FastChip(self.fast.m, self.fast.Wd, 32, k, share=self.exact, **options)
        return round(PLAIN_CYCLES / spec_lm.cycles_of(chip.generate(0, 32)[2]), 2)

    def test_a_block_of_4_behind_12(self):
        self.assertEqual(cycle_counts(self.exact._vprog(12, 4).code)[0], 14410)
        self.assertEqual(self.fast.cost(12, 4), 12404)

    def test_one_row_costs_what_a_plain_step_costs(self):
        for c in (0, 5, 31):
            self.assertEqual(self.fast.cost(c, 1),
                             cycle_counts(self.exact.plan.step(c + 1).code)[0])

    def test_the_table(self):
        self.fast.log = []
        self.fast.draft_table()
        self.assertEqual(spec_lm.cycles_of(self.fast.log), 3952)

    def test_a_perfect_draft_at_k_3_and_7(self):
        self.assertEqual(self.speedup(3, batched=False, table=False, clip=False), 1.93)
        self.assertEqual(self.speedup(7, batched=False, table=False, clip=False), 2.06)
        self.assertEqual((self.speedup(3), self.speedup(7)), (2.55, 2.83))


class Limits(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        mdl = make_model()
        cls.chip = FastChip(mdl, spec_lm.make_draft(mdl, 0, 1), 64, 7)

    def refused(self, message, function, *arguments):
        with self.assertRaises(capra.CompileError) as caught:
            function(*arguments)
        self.assertEqual(str(caught.exception), message)

    def test_a_run_reaches_the_last_token_the_chip_can_attend_to(self):
        tokens, stats, _ = self.chip.generate(0, 64)
        self.assertEqual((len(tokens), stats["emitted"], stats["accepted"]), (65, 64, 56))

    def test_a_run_past_it_is_refused_before_any_work(self):
        for n in (65, 200):
            self.chip.log = []
            self.refused("token 65: its attention would sum over 65 rows of values; the chip "
                         "multiplies at most 64 (end the run at 64 tokens)",
                         self.chip.generate, 0, n)
            self.assertEqual(self.chip.log, [])

    def test_a_block_past_it_is_refused_where_its_graph_is_built(self):
        self.refused("token 66: its attention would sum over 66 rows of values; the chip "
                     "multiplies at most 64 (end the run at 64 tokens)",
                     build_batched, 4, 62, make_model())

    def test_a_block_the_scratchpad_has_no_room_for_names_its_tokens(self):
        self.refused("tokens 49 to 64: a temporary of matmul 15 needs 1024 words of scratchpad; "
                     "the largest free block has 256 of 4096 (guess fewer than 15 in this block)",
                     self.chip._vprog, 48, 16)

    def test_an_unclipped_block_may_overshoot_the_limit_a_clipped_one_does_not(self):
        chip = FastChip(self.chip.m, self.chip.Wd, 64, 4, share=self.chip)
        self.assertEqual(chip.generate(0, 64)[1]["emitted"], 64)
        chip.clip = False
        with self.assertRaises(capra.CompileError):
            chip.generate(0, 64)


class Guesses(unittest.TestCase):
    def test_next_block_chooses_k_and_draft_anew(self):
        seen = []

        def next_block(tokens):
            seen.append(tokens)
            return len(seen) - 1, lambda tok: 7

        rows = []
        target = spec_lm.float_verify(make_model())

        def verify(c, toks, kc, vc):
            rows.append(len(toks))
            return target(c, toks, kc, vc)

        tokens, stats = decode(0, 3, verify, next_block)
        self.assertEqual(rows, list(range(1, len(rows) + 1)))
        self.assertEqual(tokens, float_generate(make_model(), 0, 3))
        self.assertEqual(seen[0], [0])
        self.assertEqual(stats["blocks"], len(seen))


if __name__ == "__main__":
    unittest.main()
