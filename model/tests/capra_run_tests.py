"""Tests of capra_run: images, outputs, refused inputs, and integers against real numbers."""

import math
import unittest

import paths
import capra
from capra import CompileError, Graph
from ga2_isa import EXT


class Running(unittest.TestCase):
    def program(self):
        g = Graph()
        g.output(g.argmax(g.input("x", (2, 3))), "chosen")
        g.output(0, "same")
        return capra.compile_graph(g, [{"x": [[127, 0, 0], [0, 0, 0]]}])

    def test_outputs_are_integers_and_their_real_numbers(self):
        g = Graph()
        g.output(g.argmax(g.input("x", (2, 3))), "chosen")
        g.output(0, "same")
        P = capra.compile_graph(g, [{"x": [[63.5, 0, 0], [0, 0, 0]]}])
        got = capra.run(P, {"x": [[1, 3, 2], [-9, -90, 0.3]]})
        self.assertEqual(got, {"chosen": ([[1], [2]], [[1.0], [2.0]]),
                               "same": ([[2, 6, 4], [-18, -127, 1]],
                                        [[1.0, 3.0, 2.0], [-9.0, -63.5, 0.5]])})

    def test_the_machine_comes_along_where_it_is_asked_for(self):
        P = self.program()
        inputs = {"x": [[1, 2, 3], [4, 5, 6]]}
        outputs, machine = capra.run(P, inputs, machine=True)
        self.assertEqual(outputs, capra.run(P, inputs))
        self.assertEqual(machine.ext[:6], [1, 2, 3, 4, 5, 6])
        self.assertEqual(outputs, capra.run_image(P, capra.ext_image(P, inputs)))

    def test_weights_and_inputs_are_quantized_into_the_image(self):
        g = Graph()
        g.matmul(g.input("x", (1, 2)), g.weight("w", [[0.5, -1.0], [0.25, 0.0]]))
        P = capra.compile_graph(g, [{"x": [[127, 0]]}])
        image = capra.ext_image(P, {"x": [[2.5, -300]]})
        self.assertEqual((len(image), image[:7]), (EXT, [3, -127, 64, -127, 32, 0, 0]))

    def test_inputs_that_are_not_the_programs_are_refused(self):
        P = self.program()
        rows = [[1, 2, 3], [4, 5, 6]]
        shape = "input x: its shape must be 2 x 3, not"
        cases = [({}, "input x: missing"),
                 ({"x": rows, "y": [[1]]}, "input y: the program has no such input; it takes x"),
                 ({"x": [[1, 2, 3]]}, f"{shape} 1 x 3"),
                 ({"x": [[1, 2], [3, 4]]}, f"{shape} 2 x 2"),
                 ({"x": []}, f"{shape} uneven or empty rows"),
                 ({"x": [[1, 2, 3], [4, 5]]}, f"{shape} uneven or empty rows")]
        cases += [({"x": [[1, 2, 3], [4, 5, value]]},
                   f"input x: every value must be a finite number, not {value!r:.40}")
                  for value in (math.nan, math.inf, -math.inf, 10 ** 400, "3", None)]
        for inputs, message in cases:
            for function in (capra.run, capra.interpret, capra.ext_image):
                with self.assertRaises(CompileError, msg=message) as caught:
                    function(P, inputs)
                self.assertEqual(str(caught.exception), message)


class Stagewise(unittest.TestCase):
    """stagewise_problems allows a matmul and a softmax 1 level, an add 2."""

    def problems(self, build, levels):
        """The problems of a one-operation graph whose result is off by `levels`."""
        g = Graph()
        node = build(g, g.input("x", (1, 2)))
        sample = {"x": [[1.0, 0.5]]}
        P = capra.compile_graph(g, [sample])
        ints = capra.interpret(P, sample)
        self.assertEqual(capra.stagewise_problems(P, ints), [])
        ints[node] = [[ints[node][0][0] - levels] + ints[node][0][1:]]
        return capra.stagewise_problems(P, ints)

    def test_a_product(self):
        def build(g, x):
            return g.matmul(x, g.weight("w", [[1.0, 0.5], [0.0, 0.0]]))
        self.assertEqual(self.problems(build, 2), [
            "matmul 2[0][0]: 125, but 127.000 in real numbers (allowed: 1)"])

    def test_a_softmax(self):
        problems = self.problems(lambda g, x: g.softmax(x), 2)
        # 127 / (1 + e**-0.5) = 79.052
        self.assertEqual(problems, ["softmax 1[0][0]: 77, but 79.052 in real numbers (allowed: 1)"])

    def test_a_sum(self):
        def build(g, x):
            return g.add(x, x)
        self.assertEqual(self.problems(build, 2), [])
        self.assertEqual(len(self.problems(build, 3)), 1)

    def test_a_sum_in_wider_steps_than_its_own(self):
        # made in steps of 20/127 and put out in 1/16: 2 levels of the one are 5.04 of the other
        g = Graph()
        node = g.add(g.input("x", (1, 1)), g.input("y", (1, 1)))
        g.softmax(node)
        sample = {"x": [[20]], "y": [[-16]]}
        P = capra.compile_graph(g, [sample])
        ints = capra.interpret(P, sample)
        for level, count in ((59, 0), (58, 1), (69, 0), (70, 1)):      # the sum is 64 levels
            ints[node] = [[level]]
            self.assertEqual(len(capra.stagewise_problems(P, ints)), count, level)


if __name__ == "__main__":
    unittest.main()
