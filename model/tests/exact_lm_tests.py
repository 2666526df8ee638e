"""Tests of exact_lm: the speculative chip's integers and tokens are the plain chip's own.

Its parts, each of which returns its problems:

1. check_rows       a verifier's logits, token, keys and values are the single steps', as integers
2. check_constants  weights, scales and requantizers are alike in every shape, and the plan's
3. check_host       keys and values come back from the host as they left
4. check_tokens     the tokens are the plain ones, for good, bad and hostile drafts

Each can fail: holed_lm is the decoder with one tag left out of the plan, and each tag is missed.
The same for every input at once: exact_proof_tests.
"""

import random
import unittest

import paths
import capra
import exact_lm
import spec_lm
import spec_tests
import tiny_lm
from capra_graph import CompileError
from comparing import assert_same
from exact_lm import ExactChip, Plan, build_step, scale_plan
from fast_lm import FastChip, build_batched, decode
from ga2_isa import K_MAX
from holed_lm import TAGS, holed_chips
from quant import INT8_MAX, quantize
from tiny_lm import D, V, make_model, step_inputs

MOST = 8                                        # rows of a block, k + 1
ROWS = ("logits", "tok", "k_new", "v_new")      # outputs that a step and a verifier share
PLAN_RUN = 16                                   # tokens of the float runs behind a plan
STARTS = (0, 5)                                 # too few to show every token: see EachTag
LENGTHS = {1: 13, 2: 7, 3: 2, 4: 9, 5: 3, 6: 8, 7: 10}      # tokens for k guesses, seldom in blocks


# ---- models and drafts ---------------------------------------------------------------------------

def models():
    """{name: model}: without a rule, with sharp attention, with a rule, with ties everywhere."""
    constant = make_model("random", 3)
    constant["Wout"] = [[0.0] * V for _ in range(D)]
    twins = make_model("random", 1)
    twins["Wout"] = [row[:V // 2] + row[:V // 2] for row in twins["Wout"]]
    return {"random 1": make_model("random", 1), "random 4": make_model("random", 4),
            "sharp": spec_tests.sharp_model(), "structured": make_model(),
            "equal logits": constant, "twin logits": twins}


def new_chip(mdl, k=3, share=None):
    return ExactChip(mdl, spec_lm.make_draft(mdl, 0, 1), PLAN_RUN, k, share=share)


def host_drafts(plain):
    """(name, next_block draft) of guessers that know the plain tokens, or need not know them.

    Each maps the tokens so far to a draft for the next block.
    """
    R = random.Random(11)

    def known(wrong_at):
        """Right guesses, but for those that wrong_at(i) picks in a block: they are one too high."""
        def draft_after(tokens):
            guesses = iter(enumerate(plain[len(tokens):] + [0] * MOST))

            def draft(_):
                i, token = next(guesses)
                return (token + wrong_at(i)) % V
            return draft
        return draft_after

    yield "perfect", known(lambda i: 0)
    yield "always wrong", known(lambda i: 1)
    yield "wrong at the second guess", known(lambda i: i == 1)
    yield "wrong now and then", known(lambda i: R.random() < 0.3)
    yield "always 7", lambda tokens: lambda _: 7
    yield "random", lambda tokens: lambda _: R.randrange(V)


# ---- 1: rows, in integers ------------------------------------------------------------------------

def plain_rows(chip, toks):
    """{output: (integer rows, float rows)} of single steps over any tokens `toks`, on the chip."""
    rows = {name: ([], []) for name in ROWS}
    for position, tok in enumerate(toks):
        cache = rows["k_new"][1][:position], rows["v_new"][1][:position]
        out = capra.run(chip.plan.step(position + 1),
                        step_inputs([chip.m["E"][tok]], *cache))
        for name in ROWS:
            for all_rows, row in zip(rows[name], out[name]):
                all_rows += row
    return rows


def other_rows(chip, toks, plain, c, m):
    """Outputs in which the verifier for (c, m) differs from the steps `plain` over `toks`."""
    cache = plain["k_new"][1][:c], plain["v_new"][1][:c]
    block = [chip.m["E"][tok] for tok in toks[c:c + m]]
    out = capra.run(chip._vprog(c, m), step_inputs(block, *cache))
    return [name for name in ROWS if out[name][0] != plain[name][0][c:c + m]]


def check_rows(seeds=range(1), shapes=8):
    """Random token sequences to the chip's limit; of each, `shapes` blocks for caches 0 .. 56."""
    for name, mdl in models().items():
        chip = new_chip(mdl)
        for seed in seeds:
            R = random.Random(seed)
            toks = [R.randrange(V) for _ in range(K_MAX)]
            plain = plain_rows(chip, toks)
            for _ in range(shapes):
                c, m = R.randrange(K_MAX - MOST + 1), R.randrange(1, MOST + 1)
                for output in other_rows(chip, toks, plain, c, m):
                    yield (f"check_rows: {name}, tokens of seed {seed}, {m} rows behind {c}: "
                           f"{output} is not that of the single steps")


# ---- 2: constants --------------------------------------------------------------------------------

def expected_scales(plan):
    """{tag: scale} by the compiler's rules: a sum's range covers its operands'."""
    ranges = dict(plan)
    ranges["h"] = max(plan["h"], plan["x"], plan["proj"])
    ranges["y"] = max(plan["y"], plan["h"], plan["ff"])
    return {tag: (value or 1.0) / INT8_MAX for tag, value in ranges.items()}


def roles(P):
    """[(node, role)]: the same role in different shapes is the same tensor of the model's step."""
    for node in P.graph.nodes:
        if node.op == "weight":
            yield node, node.attrs["name"]
        elif node.op in ("matmul", "softmax", "add"):
            yield node, P.graph.tags.get(node.id, "scores" if node.op == "matmul" else "softmax")


def check_constants():
    """In programs of many shapes: the weights' integers, requantizers and scales per tensor."""
    for name, mdl in models().items():
        chip = new_chip(mdl)
        scales = expected_scales(chip.plan.ranges)
        programs = [(f"step {L}", chip.plan.step(L)) for L in (1, 2, 17, 64)]
        programs += [(f"{m} rows behind {c}", chip._vprog(c, m))
                     for c, m in ((0, 1), (0, 4), (1, 2), (5, 8), (30, 3), (56, 8))]
        first = constants(programs[0][1])
        for where, P in programs:
            for role, value in constants(P).items():
                if value != first[role]:
                    yield f"check_constants: {name}, {where}: {role} is not as in step 1"
            for i, tag in P.graph.tags.items():
                if P.scale[i] != scales[tag]:
                    yield f"check_constants: {name}, {where}: {tag} has not the plan's scale"


def constants(P):
    """{role: integers of the weight, or every requantizer of that tensor}."""
    found = {}
    for node, role in roles(P):
        value = P.constants[node.id] if node.op == "weight" else P.params[node.id]
        if found.setdefault(role, value) != value:
            found[role] = "not one"
    return found


# ---- 3: the host's cache -------------------------------------------------------------------------

def check_host():
    """Every int8, as a float in steps of any scale, quantizes back to itself."""
    R = random.Random(5)
    scales = [5e-324, 2.3e-308, 1 / 127, 1.0, 1 / 3, 1e300]
    scales += [R.uniform(0.5, 1) * 2.0 ** R.randrange(-900, 900) for _ in range(200)]
    for mdl in models().values():
        scales += [value / INT8_MAX for value in scale_plan(mdl, 4).values() if value]
    for scale in scales:
        for q in range(-INT8_MAX, INT8_MAX + 1):
            if quantize(q * scale, scale) != q:
                yield f"check_host: {q} in steps of {scale} does not come back as {q}"


# ---- 4: tokens -----------------------------------------------------------------------------------

def check_tokens(share=2, starts=(0, 9, 5)):
    """Tokens are the plain chip's and the books balance: every model, k and draft; starts in turn.

    Of all these runs one in `share` is made.
    """
    count = 0
    for name, mdl in models().items():
        chip = new_chip(mdl)
        for k, n in LENGTHS.items():
            start = starts[k % len(starts)]
            plain, _ = chip.plain(start, n)
            for draft, draft_after in [("bigram", None), *host_drafts(plain)]:
                count += 1
                if count % share == 0:
                    where = f"check_tokens: {name}, {n} tokens from {start}, k = {k}, draft {draft}"
                    for fault in wrong_run(chip, start, n, k, plain, draft_after):
                        yield f"{where}: {fault}"


def wrong_run(chip, start, n, k, plain, draft_after=None):
    """Faults of one run of `chip` against the plain tokens; draft_after: see host_drafts."""
    draft_after = draft_after or (lambda tokens: chip.draft)
    tokens, stats = decode(start, n, chip.verify, lambda tokens: (k, draft_after(tokens)))
    if tokens != plain:
        yield f"tokens {tokens}, not {plain}"
    for rule in spec_tests.unbalanced(stats, n, k):
        yield f"{rule} does not hold in {stats}"


# ---- tests ---------------------------------------------------------------------------------------

class Exact(unittest.TestCase):
    """check_all() by parts."""

    def test_a_verifiers_rows_are_the_single_steps_as_integers(self):
        self.assertEqual(list(check_rows()), [])

    def test_all_shapes_hold_the_same_constants(self):
        self.assertEqual(list(check_constants()), [])

    def test_keys_and_values_come_back_from_the_host_as_they_left(self):
        self.assertEqual(list(check_host()), [])

    def test_tokens_are_the_plain_ones_for_good_bad_and_hostile_drafts(self):
        self.assertEqual(list(check_tokens()), [])


class Runs(unittest.TestCase):
    """Single runs through the whole chip."""

    def test_no_tokens(self):
        chip = ExactChip(make_model(), spec_lm.make_draft(make_model(), 0), 0, 3)
        self.assertEqual(chip.generate(6, 0)[0], [6])
        self.assertEqual(chip.plain(6, 0), ([6], []))
        self.assertEqual(chip.plan.ranges, scale_plan(make_model(), 1))
        self.assertEqual(chip.generate(6, 2)[0], chip.plain(6, 2)[0])

    def test_generate_logs_every_program_in_order(self):
        chip = new_chip(make_model("random", 1), 2)
        tokens, stats, log = chip.generate(5, 7)
        self.assertEqual(tokens, chip.plain(5, 7)[0])
        kinds = [entry["kind"] for entry in log]
        self.assertEqual(kinds, ["draft", "draft", "verify"] * stats["blocks"])

    def test_equal_logits_give_the_first_token_in_every_row(self):
        chip = new_chip(models()["equal logits"])
        self.assertEqual(chip.generate(9, 6)[0], [9, 0, 0, 0, 0, 0, 0])

    def test_of_twin_logits_the_first_is_chosen(self):
        chip = new_chip(models()["twin logits"])
        self.assertLess(max(chip.generate(9, 12)[0][1:]), V // 2)

    def test_a_long_run_to_the_chips_limit(self):
        chip = new_chip(spec_tests.sharp_model(), 7)
        self.assertEqual(chip.generate(3, K_MAX - 7)[0], chip.plain(3, K_MAX - 7)[0])

    def test_a_bad_plan_is_exact_too(self):
        mdl = make_model("random", 1)
        chip = new_chip(mdl)
        R = random.Random(1)
        chip.plan.ranges.update({tag: R.uniform(0.01, 1) for tag in TAGS})
        plain, _ = chip.plain(5, 12)
        self.assertEqual(list(wrong_run(chip, 5, 12, 3, plain)), [])


class Sharing(unittest.TestCase):
    """One plan and one set of programs for all drafts and k."""

    def test_programs_are_compiled_once(self):
        mdl = make_model("random", 1)
        one = new_chip(mdl, 3)
        one.generate(5, 6)
        before = dict(one.plan.programs)
        other = new_chip(mdl, 3, share=one)
        other.generate(5, 6)
        self.assertIs(other.plan, one.plan)
        self.assertEqual(list(other.plan.programs), list(before))
        for shape, P in before.items():
            self.assertIs(other.plan.programs[shape], P)

    def test_kinds_of_verifiers_are_never_mixed(self):
        mdl = make_model("random", 1)
        fast = FastChip(mdl, spec_lm.make_draft(mdl, 0, 1), PLAN_RUN, 3)
        exact = new_chip(mdl, 3, share=fast)
        alone = new_chip(mdl, 3)
        for chip in (fast, exact, fast, exact):         # each after the other has compiled
            chip.generate(5, 6)
        assert_same(self, [row["code"] for row in exact.log],
                    [row["code"] for row in alone.generate(5, 6)[2]])
        kinds = {build for build, *_ in fast.plan.programs}
        self.assertEqual(kinds, {build_batched, spec_lm.build_verify})

    def test_a_plain_step_is_no_verifier(self):
        plan = Plan(make_model("random", 1), 4)
        self.assertEqual(plan.program(build_step, 4).ext["x"]["shape"], (1, D))
        self.assertEqual(plan.program(spec_lm.build_verify, 4, 0).ext["x"]["shape"], (4, D))

    def test_a_chip_of_another_model_lends_nothing(self):
        one = new_chip(make_model("random", 1))
        with self.assertRaises(ValueError) as caught:
            new_chip(make_model("random", 2), share=one)
        self.assertEqual(str(caught.exception), "share is a chip of another model; its programs "
                                                "hold other weights")


class Shapes(unittest.TestCase):
    """Shapes no calibration met, and the chip's limit."""

    def test_a_shape_that_no_calibration_met_runs_under_both_schemes(self):
        mdl = make_model("random", 1)
        Wd = spec_lm.make_draft(mdl, 0, 1)
        chapter = spec_lm.SpecChip(mdl, Wd, 32, 4)
        self.assertNotIn((6, 5), chapter.calib)
        tokens, _, log = chapter.generate(0, 32)
        self.assertEqual(len(tokens), 33)
        self.assertIn((6, 5), [(entry.get("c"), entry.get("m")) for entry in log])
        self.assertEqual(chapter.vprogs[6, 5].notes[-1],
                         "no calibration run met 5 rows behind 6 cached ones: calibrated on plain "
                         "runs of 11 tokens from 16 starts")
        exact = ExactChip(mdl, Wd, 32, 4)
        self.assertEqual(exact.generate(0, 32)[0], exact.plain(0, 32)[0])
        self.assertEqual(exact._vprog(6, 5).notes, [])

    def test_token_65_is_refused(self):
        chip = new_chip(make_model(), 4)
        limit = ("token 65: its attention would sum over 65 rows of values; the chip multiplies at "
                 "most 64 (end the run at 64 tokens)")
        for refused in (lambda: chip.plan.step(65), lambda: chip._vprog(60, 5)):
            with self.assertRaises(CompileError) as caught:
                refused()
            self.assertEqual(str(caught.exception), limit)
        self.assertEqual(chip._vprog(60, 4).ext["k_new"]["shape"], (4, D))

    def test_a_plan_needs_something_to_run(self):
        for steps, starts, message in (
                (0, range(V), "steps = 0: a scale plan is measured on runs of at least one token"),
                (4, (), "there is no start to calibrate on; give at least one token"),
                (4, (3, 16), "start 16 is not a token; tokens are 0 to 15")):
            with self.assertRaises(ValueError) as caught:
                Plan(make_model(), steps, starts)
            self.assertEqual(str(caught.exception), message)

    def test_ranges_are_as_small_as_the_models_numbers(self):
        mdl = make_model("random", 1)
        small = {name: [[value / 1000 for value in row] for row in mdl[name]]
                 for name in ("E", "Wout")}
        plan = Plan({**mdl, **small}, 2, (0,))
        self.assertLess(max(plan.ranges.values()), 0.01)


class EachTag(unittest.TestCase):
    """A plan without one of its tags is caught."""

    @classmethod
    def setUpClass(cls):
        cls.chips = holed_chips(make_model("random", 4), 20, STARTS)

    def test_the_plan_has_these_tags_and_no_others(self):
        self.assertEqual(sorted(scale_plan(make_model(), 1)), sorted(TAGS))
        graph = spec_lm.build_verify(2, 3, make_model())
        self.assertEqual(set(graph.tags.values()), set(TAGS))

    def test_rows_differ_where_any_one_tag_is_left_out(self):
        R = random.Random(3)
        toks = [R.randrange(V) for _ in range(16)]
        for tag, chip in self.chips.items():
            with self.subTest(tag):
                plain = plain_rows(chip, toks)
                shapes = ((0, 4), (4, 4), (9, 2), (12, 4), (3, 8), (1, 1))
                self.assertTrue(any(other_rows(chip, toks, plain, c, m) for c, m in shapes))

    def test_tokens_differ_where_a_tag_is_left_out(self):
        plain, _ = self.chips["x"].plain(9, 16)
        self.assertNotEqual(list(wrong_run(self.chips["x"], 9, 16, 3, plain)), [])

    def test_from_every_start_keys_and_values_have_one_range_in_every_shape(self):
        """They depend on their own token alone, and position 0 has shown all sixteen."""
        for seed in (1, 4):
            for here in exact_lm.position_ranges(make_model("random", seed), 8):
                first = exact_lm.position_ranges(make_model("random", seed), 1)[0]
                self.assertLessEqual(here["k"], first["k"])
                self.assertLessEqual(here["v"], first["v"])

    def test_the_chapters_scheme_differs_from_its_own_plain_steps(self):
        """Per-shape calibration is what a plan without eight of its tags is."""
        mdl = make_model("random", 6)
        chapter = spec_lm.SpecChip(mdl, spec_lm.make_draft(mdl, 0, 1), 32, 1)
        plain, _ = tiny_lm.Chip(mdl, 32).generate(9, 32)
        self.assertNotEqual(chapter.generate(9, 32)[0], plain)


if __name__ == "__main__":
    unittest.main()
