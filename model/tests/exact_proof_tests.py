"""Tests of exact_proof: every verifier is proved, a wrong program is not, and terms mean numbers.

check_all(names, shapes) -> a list of problems, empty when all is well: the proof for the models of
exact_lm_tests so named.
"""

import unittest
from dataclasses import replace
from unittest import mock

import paths
import exact_proof
import spec_tests
from comparing import assert_same
from exact_lm_tests import PLAN_RUN, ROWS, STARTS, models, new_chip, plain_rows
from exact_lm import build_step
from exact_proof import SHAPES
from fast_lm import FastChip
from ga2_isa import EXT, Machine, s8
from ga2_suite import random_programs
from holed_lm import holed_chips
from quant import clamp8, quantize, requant
from softmax_gold import softmax
from spec_lm import build_verify
from tiny_lm import make_model

LETTERS = {"LD": "b", "ST": "a", "MM": "c", "RQ": "d", "SM": "b", "VADD": "c", "AMAX": "b"}


def check_all(names=("random 1",), shapes=SHAPES):
    """The faults of all blocks of up to 8 rows that the chip can hold, as sentences."""
    every = models()
    return [f"{name}: {problem}" for name in names
            for problem in exact_proof.unproved(new_chip(every[name]), shapes)]


def numbers_of(terms, x=()):
    """The integer of every term, in order; x[position][column] are those of the input."""
    done = []
    for kind, *rest in terms.numbers:
        if kind == "int":
            value = rest[0]
        elif kind == "x":
            position, column = rest
            value = x[position][column]
        elif kind == "mm":
            words = [s8(done[i]) for i in rest]
            inner = len(words) // 2
            value = sum(a * b for a, b in zip(words[:inner], words[inner:]))
        elif kind == "rq":
            value = requant(done[rest[0]], *rest[1:])
        elif kind == "sm":
            value = softmax([s8(done[i]) for i in rest[1:]])[rest[0]]
        elif kind == "vadd":
            value = clamp8(sum(s8(done[i]) for i in rest))
        else:
            words = [done[i] for i in rest]
            value = words.index(max(words))
        done.append(value)
    return done


class Proof(unittest.TestCase):
    """What is proved, and what is not."""

    def test_every_block_of_up_to_8_rows_is_proved_for_every_input(self):
        self.assertEqual(len(SHAPES), 484)
        self.assertEqual(check_all(), [])

    def test_the_batched_verifier_is_proved_as_well(self):
        chip = new_chip(make_model("random", 1))
        fast = FastChip(chip.m, chip.Wd, PLAN_RUN, 3, share=chip)
        shapes = [(0, 4), (3, 1), (5, 4), (8, 8), (56, 8)]
        self.assertEqual(exact_proof.unproved(fast, shapes), [])

    def test_a_plan_without_one_of_its_tags_is_not(self):
        for tag, chip in holed_chips(make_model("random", 4), 20, STARTS).items():
            with self.subTest(tag):
                faults = exact_proof.unproved(chip, [(0, 4), (4, 4), (9, 2)], 13)
                self.assertNotEqual(faults, [])

    def test_one_wrong_operand_in_any_kind_of_instruction_is_found(self):
        chip = new_chip(make_model("random", 1))
        P = chip._vprog(4, 4)
        for name, letter in LETTERS.items():
            with self.subTest(name):
                code = list(P.code)
                place = max(i for i, ins in enumerate(code) if ins["op"] == name)
                code[place] = {**code[place], letter: code[place][letter] ^ 1}
                chip.plan.programs[build_verify, 4, 4] = replace(P, code=code)
                self.assertNotEqual(exact_proof.unproved(chip, [(4, 4)], 8), [])
        chip.plan.programs[build_verify, 4, 4] = P
        self.assertEqual(exact_proof.unproved(chip, [(4, 4)], 8), [])

    def test_a_fault_names_the_block_the_output_and_the_row(self):
        chip = new_chip(make_model("random", 1))
        P = chip._vprog(4, 3)
        code = list(P.code)
        place = max(i for i, ins in enumerate(code) if ins["op"] == "AMAX")
        code[place] = {**code[place], "c": code[place]["c"] - 1}
        chip.plan.programs[build_verify, 3, 4] = replace(P, code=code)
        self.assertEqual(
            exact_proof.unproved(chip, [(4, 3)], 7),
            ["3 rows behind 4: tok of row 2 is not what the step at position 6 computes"])

    def test_a_cache_in_other_steps_is_found(self):
        chip = new_chip(make_model("random", 1))
        P = chip._vprog(4, 2)
        kc = P.ext["kc"]["node"]
        chip.plan.programs[build_verify, 2, 4] = replace(
            P, scale={**P.scale, kc: 2 * P.scale[kc]})
        self.assertEqual(exact_proof.unproved(chip, [(4, 2)], 6),
                         ["2 rows behind 4: the scale of kc is not that of the step at position 0"])


    def test_a_plain_step_with_a_cache_in_other_steps_is_found(self):
        chip = new_chip(make_model("random", 1))
        P = chip.plan.step(4)
        for name, i in (("k_new", P.ext["k_new"]["node"]), ("vc", P.ext["vc"]["node"])):
            chip.plan.programs[build_step, 4] = replace(P, scale={**P.scale, i: 2 * P.scale[i]})
            faults = exact_proof.unproved(chip, [], 5)
            self.assertIn(f"the step at position 3: the scale of {name} is not that of the step "
                          "at position 0", faults)

    def test_an_integer_that_does_not_come_back_from_the_host_is_found(self):
        chip = new_chip(make_model("random", 1))
        P = chip.plan.step(1)
        one_off = lambda x, scale: quantize(x, scale) + (quantize(x, scale) == 5)
        self.assertEqual(exact_proof.not_returning(P), [])
        with mock.patch.object(exact_proof, "quantize", one_off):
            faults = exact_proof.unproved(chip, [], 1)
        scales = {name: P.scale[P.ext[name]["node"]] for name in ("k_new", "v_new")}
        self.assertEqual(faults, [f"{name}: 5 in steps of {scale} comes back from the host as 6"
                                  for name, scale in scales.items()])


class TermsAndNumbers(unittest.TestCase):
    """A program on symbols does what the simulator does."""

    def test_terms_have_the_simulators_integers(self):
        for program in random_programs(40, 3):
            terms = exact_proof.Terms()
            ext = [terms.number("int", word) for word in program.ext]
            ext += [exact_proof.ZERO] * (EXT - len(ext))
            after = exact_proof.execute(program.code, ext, terms)
            numbers = numbers_of(terms)
            assert_same(self, [numbers[i] for i in after],
                        Machine(program.ext).run(program.code).ext, program.name)

    def test_a_requantization_by_1_is_the_word_itself_only_where_that_is_one_of_int8(self):
        terms = exact_proof.Terms()
        total = terms.number("mm", terms.number("x", 0, 0), terms.number("int", 3))
        word = terms.requantized(total, 5, 7, 0)
        self.assertEqual(terms.requantized(word, 1 << 23, 23, 0), word)
        for source, constants in ((total, (1 << 23, 23, 0)), (word, (1 << 23, 22, 0)),
                                  (word, (1 << 23, 23, 1))):
            self.assertNotIn(terms.requantized(source, *constants), (total, word))

    def test_a_verifiers_terms_have_the_simulators_integers(self):
        mdl = spec_tests.sharp_model()
        chip = new_chip(mdl)
        toks = [3, 8, 1, 12, 9, 9, 0]
        plain = plain_rows(chip, toks)
        P = chip._vprog(0, len(toks))
        terms = exact_proof.Terms()
        inputs = exact_proof.block_inputs(P, terms, 0, len(toks), {})
        block = exact_proof.outputs(P, terms, inputs)
        scale = P.scale[P.ext["x"]["node"]]
        x = [[quantize(value, scale) for value in mdl["E"][tok]] for tok in toks]
        numbers = numbers_of(terms, x)
        for name in ROWS:
            rows = [[numbers[i] for i in row] for row in block[name]]
            assert_same(self, rows, plain[name][0], name)


if __name__ == "__main__":
    unittest.main()
