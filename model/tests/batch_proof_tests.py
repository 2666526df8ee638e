"""Tests of batch_proof: batches are proved for every input, and a wrong one is not.

check_all() -> a list of problems, empty when all is well: the proof for some mixes of each width.
"""

import random
import unittest
from dataclasses import replace
from unittest import mock

import paths
import batch_lm
import batch_proof
import batch_runs
from batch_proof import MIXES
from exact_proof_tests import LETTERS

MIX = ((3, 2), (1, 1), (3, 3))                  # two caches of one length, ragged blocks


def make_chip():
    return batch_runs.make_chip("random", 1, 24)


def some_mixes(count):
    """`MIX`, and mixes drawn among all."""
    return [MIX] + random.Random(1).sample(MIXES, count)


def check_all():
    """The faults of some mixes, as sentences."""
    return batch_proof.unproved(make_chip(), some_mixes(30))


class Proof(unittest.TestCase):
    def test_mixes_of_every_width_are_proved(self):
        self.assertEqual(batch_proof.unproved(make_chip(), some_mixes(80)), [])

    def test_every_mix_of_up_to_three_sequences_of_up_to_four_rows_is_there(self):
        self.assertEqual(len(set(MIXES)), 16 + 16 ** 2 + 16 ** 3)
        self.assertEqual({m for mix in MIXES for _, m in mix}, {1, 2, 3, 4})

    def test_one_wrong_operand_in_any_kind_of_instruction_is_found(self):
        chip = make_chip()
        P = chip.batch_program(MIX)
        key = batch_lm.build_batch, MIX
        self.assertIs(chip.plan.programs[key], P)
        for name, letter in LETTERS.items():
            with self.subTest(name):
                code = list(P.code)
                place = max(i for i, ins in enumerate(code) if ins["op"] == name)
                code[place] = {**code[place], letter: code[place][letter] ^ 1}
                chip.plan.programs[key] = replace(P, code=code)
                self.assertNotEqual(batch_proof.unproved(chip, [MIX]), [])

    def test_a_fault_names_the_mix_the_output_the_sequence_and_the_row(self):
        chip = make_chip()
        P = chip.batch_program(MIX)
        code = list(P.code)
        place = max(i for i, ins in enumerate(code) if ins["op"] == "AMAX")
        code[place] = {**code[place], "c": code[place]["c"] - 1}
        chip.plan.programs[batch_lm.build_batch, MIX] = replace(P, code=code)
        self.assertEqual(
            batch_proof.unproved(chip, [MIX]),
            [f"{MIX}: tok of sequence 2, row 2, is not what its own step at position 5 computes"])

    def test_a_neighbours_cache_is_found_where_its_shape_is_the_same(self):
        def neighbours(mdl, blocks):
            inputs = batch_lm.batch_inputs(mdl, blocks)
            return {**inputs, "vc 0": inputs["vc 2"]}

        with mock.patch.object(batch_proof, "batch_inputs", neighbours):
            faults = batch_proof.unproved(make_chip(), [MIX])
        self.assertIn(f"{MIX}: logits of sequence 0, row 0, is not what its own step at position "
                      "3 computes", faults)
        self.assertFalse(any("of sequence 2" in fault for fault in faults))

    def test_rows_of_two_sequences_exchanged_by_the_host_are_found(self):
        def exchanged(outputs, sizes):
            answers = batch_lm.batch_answers(outputs, sizes)
            return answers[::-1]

        with mock.patch.object(batch_proof, "batch_answers", exchanged):
            self.assertNotEqual(batch_proof.unproved(make_chip(), [((1, 2), (1, 2))]), [])

    def test_a_cache_in_other_steps_is_found(self):
        chip = make_chip()
        P = chip.batch_program(MIX)
        for name in ("kc 1", "v_new 2", "x"):
            i = P.ext[name]["node"]
            chip.plan.programs[batch_lm.build_batch, MIX] = replace(
                P, scale={**P.scale, i: 2 * P.scale[i]})
            self.assertIn(f"{MIX}: the scale of {name} is not that of the plain step",
                          batch_proof.unproved(chip, [MIX]))


if __name__ == "__main__":
    unittest.main()
