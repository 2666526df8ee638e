"""Tests of the faster decoder: verifier, draft's table, clipping, two-token draft, adaptive k.

check_all() -> a list of problems, empty when all is well. Its parts:

1. check_blocks    the batched verifier's outputs are the chapter's, integer by integer
2. check_tokens    the tokens are the plain ones under all combinations of options; books balance
3. check_table     the table's answers are those of the draft's own program
4. check_pairs     the two-token draft is asked about the last two tokens
5. check_learning  the adaptive k counts the guesses that were looked at
6. check_play      what `play` says without a chip is what the chip does
"""

import itertools
import math
import random
import unittest

import paths
import capra
import spec_lm
import spec_tests
from adaptive_lm import Adaptive, AdaptiveChip, chance, planner, play
from capra_graph import mv
from comparing import assert_same
from exact_lm import ExactChip
from fast_lm import FastChip, build_batched, clipped, compile_draft_table, decode, fixed
from ga2_isa import Machine, build, cycle_counts
from pair_lm import PairChip, make_pair_draft, pair_tables
from tiny_lm import V, argmax, float_generate, make_model, step_inputs

OPTIONS = ("batched", "table", "clip")
PLAIN_CYCLES = 268346                           # 32 tokens, one by one


def check_all():
    """The problems of all six parts, one by one."""
    for check in (check_blocks, check_tokens, check_table, check_pairs, check_learning, check_play):
        yield from check()


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


# ---- 4 -------------------------------------------------------------------------------------------

def check_pairs():
    """A block's guesses are made after (before, last), each pair once in a run."""
    mdl = make_model("random", 2)
    chip = PairChip(mdl, 4, 3)
    asked = []

    def ask(before, tok):
        asked.append((before, tok))
        return (tok + 3) % V

    chip.ask = ask
    draft_after = chip.drafts()
    for tokens, pairs in (([7], [(None, 7), (7, 10), (10, 13)]),
                          ([7, 4], [(7, 4), (4, 7)]),
                          ([2, 7, 4], [])):
        asked.clear()
        draft = draft_after(tokens)
        guesses = tokens[-1:]
        for _ in range(3):
            guesses.append(draft(guesses[-1]))
        if asked != pairs:
            yield f"check_pairs: behind {tokens} it asks {asked}, not {pairs}"


# ---- 5 -------------------------------------------------------------------------------------------

def check_learning():
    """Behind a refused guess nobody looks; a block without a refusal has none."""
    policy = Adaptive(lambda w, a, r: (0.0, (a, r)))
    for proposed, accepted, known in ((0, 0, (0, 0)), (5, 2, (2, 1)), (8, 5, (5, 1)),
                                      (8, 5, (5, 1)), (9, 5, (5, 2))):
        learned = policy(9, {"proposed": proposed, "accepted": accepted})
        if learned != known:
            yield (f"check_learning: after {accepted} accepted of {proposed}, it counts {learned}, "
                   f"not {known}")


# ---- 6 -------------------------------------------------------------------------------------------

def check_play():
    """Statistics and cycles of `play` are the chip's: fixed, clipped, adaptive, two-token."""
    n, mdl = 13, make_model("random", 2)
    exact = ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), n + 6, 3)
    plain, _ = exact.plain(0, n + 6)
    first = FastChip(mdl, exact.Wd, n, 4, share=exact)
    chips = {
        "clipped": first,
        "fixed": FastChip(mdl, exact.Wd, n, 4, share=first, clip=False),
        "adaptive": AdaptiveChip(mdl, exact.Wd, n, 6, share=first),
        "two-token": PairChip(mdl, n, 4, share=first),
    }
    for name, chip in chips.items():
        tokens, stats, log = chip.generate(0, n)
        cycles = spec_lm.cycles_of([entry for entry in log if entry["kind"] == "verify"])
        if tokens != plain[:n + 1]:
            yield f"check_play: {name}: tokens {tokens}, not {plain[:n + 1]}"
        said = play(plain, n, chip.policy(n), chip.drafts(), chip.cost)
        if said != (stats, cycles):
            yield f"check_play: {name}: {said}, on the chip {(stats, cycles)}"


# ---- tests ---------------------------------------------------------------------------------------

class Exact(unittest.TestCase):
    def test_batched_blocks_are_the_chapters(self):
        self.assertEqual(list(check_blocks()), [])

    def test_tokens_are_the_plain_ones_under_all_options(self):
        self.assertEqual(list(check_tokens()), [])

    def test_the_table_holds_the_drafts_own_answers(self):
        self.assertEqual(list(check_table()), [])

    def test_the_two_token_draft_is_asked_about_the_last_two(self):
        self.assertEqual(list(check_pairs()), [])

    def test_only_guesses_that_were_looked_at_count(self):
        self.assertEqual(list(check_learning()), [])

    def test_play_is_what_the_chip_does(self):
        self.assertEqual(list(check_play()), [])

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
                     FastChip(mdl, exact.Wd, 12, 3, share=exact, table=False),
                     PairChip(mdl, 12, 3, share=exact)):
            tokens, _, log = chip.generate(4, 12)
            kinds = {entry["kind"] for entry in log}
            self.assertIn("verify", kinds)
            self.assertTrue(kinds & {"draft", "table"})
            for entry in list(log):             # asking again adds to it
                after = Machine(entry["ext"]).run(entry["code"]).ext
                if entry["kind"] == "verify":
                    tok = chip._vprog(entry["c"], entry["m"]).ext["tok"]["addr"]
                    self.assertEqual(after[tok], tokens[entry["c"] + 1])
                elif entry["kind"] == "table":
                    tok = compile_draft_table(mdl, exact.Wd).ext["tok"]["addr"]
                    self.assertEqual(after[tok:tok + V], [exact.draft(t) for t in range(V)])
                elif "last" in entry:
                    tok = chip.draft_program(entry["before"]).ext["tok"]["addr"]
                    self.assertEqual(after[tok], chip.ask(entry["before"], entry["last"]))

    def test_every_chip_refuses_the_same_starts_and_counts(self):
        mdl = make_model("random", 2)
        Wd = spec_lm.make_draft(mdl, 0, 1)
        for make in (lambda *rest: ExactChip(mdl, Wd, *rest),
                     lambda *rest: FastChip(mdl, Wd, *rest), lambda *rest: PairChip(mdl, *rest)):
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

    def test_the_adaptive_k_keeps_clear_of_it(self):
        chip = AdaptiveChip(self.chip.m, self.chip.Wd, 64, 15, share=self.chip)
        self.assertEqual(chip.price(48, 16), math.inf)
        self.assertEqual(chip.price(48, 4), self.chip.cost(48, 4))

    def test_an_unclipped_block_may_overshoot_the_limit_a_clipped_one_does_not(self):
        chip = FastChip(self.chip.m, self.chip.Wd, 64, 4, share=self.chip)
        self.assertEqual(chip.generate(0, 64)[1]["emitted"], 64)
        chip.clip = False
        with self.assertRaises(capra.CompileError):
            chip.generate(0, 64)


class Guesses(unittest.TestCase):
    def test_fixed_and_clipped(self):
        self.assertEqual([fixed(3)(wanted, {}) for wanted in (1, 2, 4, 9)], [3, 3, 3, 3])
        self.assertEqual([clipped(3)(wanted, {}) for wanted in (1, 2, 4, 9)], [0, 1, 3, 3])

    def test_next_block_chooses_k_and_draft_anew(self):
        seen = []

        def next_block(tokens, stats):
            seen.append((tokens, dict(stats)))
            return stats["blocks"], lambda tok: 7

        rows = []
        target = spec_lm.float_verify(make_model())

        def verify(c, toks, kc, vc):
            rows.append(len(toks))
            return target(c, toks, kc, vc)

        tokens, stats = decode(0, 3, verify, next_block)
        self.assertEqual(rows, list(range(1, len(rows) + 1)))
        self.assertEqual(tokens, float_generate(make_model(), 0, 3))
        self.assertEqual(seen[0][0], [0])
        self.assertEqual(seen[0][1]["blocks"], 0)


class TwoTokens(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.mdl = make_model("random", 2)
        cls.tables = pair_tables(cls.mdl)
        cls.bigram = spec_lm.bigram_table(cls.mdl)
        cls.followers = {}
        for start in range(V):
            run = float_generate(cls.mdl, start, 24)
            for before, t, j in zip(run, run[1:], run[2:]):
                cls.followers.setdefault((before, t), []).append(j)

    def test_256_entries_and_the_bigram_for_the_first_token(self):
        self.assertEqual(set(self.tables), set(range(V)) | {None})
        assert_same(self, self.tables[None], self.bigram)

    def test_an_unknown_pair_has_the_bigrams_answer(self):
        for before in range(V):
            for t in range(V):
                if (before, t) not in self.followers:
                    for got, wanted in zip(self.tables[before][t], self.bigram[t]):
                        self.assertAlmostEqual(got, wanted, places=9)

    def test_a_known_pair_answers_with_its_commonest_follower(self):
        self.assertGreater(len(self.followers), 16)
        for (before, t), after in self.followers.items():
            top = max(after.count(j) for j in after)
            answer = argmax(self.tables[before][t])
            if top > len(after) / 2 + 1:
                self.assertEqual(after.count(answer), top, (before, t))

    def test_each_row_is_a_distribution(self):
        for L in self.tables.values():
            for row in L:
                total = math.fsum(math.exp(logit / 4) / V for logit in row)
                self.assertAlmostEqual(total, 1, places=9)

    def test_its_matrices_give_its_tables(self):
        W = make_pair_draft(self.mdl)
        for before in (None, 0, 11):
            for t in range(V):
                for got, wanted in zip(mv(self.mdl["E"][t], W[before]), self.tables[before][t]):
                    self.assertAlmostEqual(got, wanted, places=6)

    def test_no_pair_is_asked_twice_in_a_run(self):
        chip = PairChip(self.mdl, 12, 4)
        for _ in range(2):
            tokens, stats, log = chip.generate(0, 12)
            asked = [(entry["before"], entry["last"]) for entry in log if entry["kind"] == "draft"]
            self.assertEqual(len(asked), len(set(asked)))
            self.assertEqual(asked[0], (None, 0))
            self.assertEqual(tokens, chip.plain(0, 12)[0])


class AdaptiveK(unittest.TestCase):
    def test_the_chance_after_nothing_success_and_failure(self):
        self.assertEqual([chance(0, 0), chance(1, 0), chance(0, 1), chance(3, 0)],
                         [0.5, 0.75, 0.25, 0.875])

    def test_the_last_token_needs_no_guess(self):
        self.assertEqual(planner(5, lambda c, m: 10 * c + m)(1, 0, 0), (41.0, 0))

    def test_three_tokens_worked_out_by_hand(self):
        cost = {(2, 1): 10, (1, 1): 10, (1, 2): 14, (0, 1): 10, (0, 2): 14, (0, 3): 16}
        best = planner(3, lambda c, m: cost[c, m])
        # two wanted: guess if 14 + (1 - chance) * 10 < 20
        self.assertEqual(best(2, 0, 1), (20.0, 0))                      # 21.5 with a chance of 1/4
        self.assertEqual(best(2, 1, 0), (16.5, 1))                      # a chance of 3/4
        self.assertEqual(best(2, 0, 0), (19.0, 1))
        none = 10 + 19.0
        one = 14 + 0.5 * 20.0 + 0.5 * 10
        two = 16 + 0.5 * 20.0 + 0.5 * 0.25 * 10
        self.assertEqual(best(3, 0, 0), (min(none, one, two), 2))

    def test_rows_that_cost_nothing_are_all_used_and_rows_that_cost_a_step_never(self):
        self.assertEqual(planner(20, lambda c, m: 100)(20, 0, 0)[1], 15)
        self.assertEqual(planner(20, lambda c, m: 100, most=6)(20, 0, 0)[1], 6)
        self.assertEqual(planner(20, lambda c, m: 100 * m)(20, 9, 0)[1], 0)

    def test_an_accepted_past_makes_bold_a_refused_one_timid(self):
        best = planner(24, lambda c, m: 60 + 20 * m)
        choices = [best(24, *past)[1] for past in ((0, 8), (0, 1), (0, 0), (4, 0), (40, 0))]
        self.assertEqual(choices, sorted(choices))
        self.assertLess(choices[0], choices[-1])


if __name__ == "__main__":
    unittest.main()
