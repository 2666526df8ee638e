"""The names that the chapter's listings are typed in over: a reader's own text must still run.

Each of the chapter's files runs alone over the project's modules, so what they call is a contract:
names, arguments, attributes, fields. And where a reader has typed spec_lm over ours, our scripts
may use nothing that the chapter's own spec_lm lacks.
"""

import inspect
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import paths
import capra
import ga2_isa
import ga2_progs
import hw
import spec_lm
import spec_tests
import tiny_lm

# Arguments in their order; "=" marks one with a default.
FUNCTIONS = {
    capra.Graph.input: "self name shape",
    capra.Graph.weight: "self name array",
    capra.Graph.matmul: "self a b transpose_b= scale=",
    capra.Graph.softmax: "self a",
    capra.Graph.add: "self a b",
    capra.Graph.relu: "self a",
    capra.Graph.concat_rows: "self a b",
    capra.Graph.slice_rows: "self a start count",
    capra.Graph.argmax: "self a",
    capra.Graph.output: "self a name",
    capra.Graph.tag: "self a name",
    capra.Graph._add: "self op ins shape **attrs",
    capra.evaluate: "g inputs",
    capra.plan_scales: "g calib ranges=",
    capra.compile_graph: "g calib reuse= ranges=",
    capra.ext_image: "P inputs",
    capra.run: "P inputs machine=",
    capra.interpret: "P inputs",
    ga2_isa.build: "name **operands",
    ga2_isa.encode: "ins",
    ga2_isa.decode: "word",
    ga2_isa.cycle_counts: "code lat=",
    ga2_progs.record: "code ext lat= words=",
    hw.sim_icarus: "files top root= defines=",
    hw.sim_verilator: "files top root= defines=",
    tiny_lm.f_next: "token",
    tiny_lm.make_model: "kind= seed= noise=",
    tiny_lm.mv: "x W",
    tiny_lm.float_step: "mdl tok kc vc",
    tiny_lm.float_generate: "mdl start n",
    tiny_lm.build_graph: "mdl L",
    tiny_lm.calibrate: "mdl steps starts=",
    tiny_lm.Chip: "mdl steps starts=",
    tiny_lm.Chip.generate: "self start n",
    tiny_lm.Chip.program: "self L",
    spec_lm.build_verify: "m c mdl",
    spec_lm.build_draft: "Wd",
    spec_lm.float_block: "mdl toks kc vc aux=",
    spec_lm.solve: "A B",
    spec_lm.make_draft: "mdl noise seed=",
    spec_lm.draft_next: "mdl Wd tok",
    spec_lm.speculate: "mdl Wd start n k verify draft=",
    spec_lm.float_verify: "mdl",
    spec_lm.SpecChip: "mdl Wd n k starts=",
    spec_lm.SpecChip._vprog: "self c mm",
    spec_lm.SpecChip.verify: "self c toks kc vc",
    spec_lm.SpecChip.draft: "self tok",
    spec_lm.SpecChip.generate: "self start n",
    spec_lm.cycles_of: "log",
    spec_tests.check_all: "",
}
SPEC_LM = ("build_verify", "build_draft", "float_block", "solve", "make_draft", "draft_next",
           "speculate", "float_verify", "SpecChip", "cycles_of")
CHIP = ("m", "Wd", "k", "vprogs", "dprog", "log", "calib", "ranges", "dcalib")
FIRST_SEEN = ["LD", "MM", "RQ", "SM", "ST", "VADD", "AMAX", "HALT"]     # in the verifier's program

# A script run with a spec_lm of no other names than the chapter's.
OVER_THE_LISTING = """
import sys
sys.path.insert(0, {tools!r})
import paths, types, spec_lm as ours
typed = types.ModuleType("spec_lm")
for name in {names}:
    setattr(typed, name, getattr(ours, name))
class SpecChip(ours.SpecChip):
    def __getattribute__(self, name):
        inside = sys._getframe(1).f_globals["__name__"] == "spec_lm"
        if not inside and name not in {attributes}:
            raise AttributeError(f"the chapter's SpecChip has no {{name}}")
        return super().__getattribute__(name)
typed.SpecChip = SpecChip
sys.modules["spec_lm"] = typed
import {module}
{then}
"""


def arguments(function):
    """The arguments of a function as FUNCTIONS writes them."""
    words = []
    for name, argument in inspect.signature(function).parameters.items():
        if argument.kind is argument.VAR_KEYWORD:
            words.append("**" + name)
        else:
            words.append(name if argument.default is argument.empty else name + "=")
    return " ".join(words)


class Names(unittest.TestCase):
    def test_every_function_takes_the_chapters_arguments_in_their_order(self):
        for function, expected in FUNCTIONS.items():
            with self.subTest(function.__qualname__):
                taken = arguments(function)
                if function.__module__ == "hw":             # more may follow, with defaults
                    taken, more = taken[:len(expected)], taken[len(expected):]
                    self.assertTrue(all(word.endswith("=") or word.startswith("**")
                                        for word in more.split()), more)
                self.assertEqual(taken, expected)

    def test_the_sizes(self):
        self.assertEqual((tiny_lm.V, tiny_lm.D, tiny_lm.HID), (16, 16, 32))
        self.assertEqual((ga2_isa.SPAD, ga2_isa.LAT), (4096, 8))
        self.assertEqual(hw.ROOT, paths.ROOT)


class Fields(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        mdl = tiny_lm.make_model()
        cls.chip = spec_lm.SpecChip(mdl, spec_lm.make_draft(mdl, 0), 5, 1, starts=(0,))
        cls.tokens, cls.stats, cls.log = cls.chip.generate(0, 5)

    def test_a_chip_has_the_chapters_attributes(self):
        for name in CHIP:
            self.assertTrue(hasattr(self.chip, name), name)
        self.assertEqual(set(self.chip.ranges), {"x", "k", "v"})
        self.assertEqual(set(self.chip.calib), {(0, 2), (2, 2), (4, 2)})
        self.assertEqual(set(self.chip.vprogs), set(self.chip.calib))
        self.assertIs(self.chip.vprogs[2, 2], self.chip._vprog(2, 2))

    def test_a_log_entry_is_a_dict(self):
        for entry in self.log:
            self.assertIs(type(entry), dict)
            self.assertEqual(set(entry), {"kind", "code", "ext"} | ({"c", "m"} if "c" in entry
                                                                    else set()))
        self.assertEqual([entry["kind"] for entry in self.log], ["draft", "verify"] * 3)

    def test_every_log_entry_replays_to_its_answer(self):
        accepted = iter(self.tokens[1:])
        for entry in self.log:
            P = self.chip.dprog if entry["kind"] == "draft" else self.chip._vprog(entry["c"], 2)
            tok = P.ext["tok"]["addr"]
            after = ga2_isa.Machine(entry["ext"]).run(entry["code"]).ext
            if entry["kind"] == "verify":
                for row in range(2):
                    self.assertEqual(after[tok + row], next(accepted, after[tok + row]))
            else:
                self.assertEqual(after[tok], self.tokens[self.log.index(entry) + 1])

    def test_a_node_and_a_program_have_the_chapters_fields(self):
        g = capra.Graph()
        x = g.input("x", (4, 3))
        some = g._add("slice", [x], (2, 3), start=1, count=2)
        self.assertEqual(g.nodes[some].attrs, g.nodes[g.slice_rows(x, 1, 2)].attrs)
        g.output(g.argmax(some), "best")
        node = g.nodes[some]
        self.assertEqual((node.id, node.op, list(node.ins), node.shape, node.attrs),
                         (1, "slice", [0], (2, 3), {"start": 1, "count": 2}))
        P = capra.compile_graph(g, [{"x": [[1, 2, 3]] * 4}])
        for name in ("code", "graph", "scale", "notes", "params", "ext", "spad_high"):
            self.assertTrue(hasattr(P, name), name)
        self.assertEqual(P.ext["best"], {"addr": 12, "shape": (2, 1), "node": 4, "kind": "output"})

    def test_the_verifier_stores_attn_before_its_first_addition(self):
        seen = []
        for ins in spec_lm.SpecChip._vprog(self.chip, 4, 4).code:
            if ins["op"] not in seen:
                seen.append(ins["op"])
        self.assertEqual(seen, FIRST_SEEN)


class OverTheListing(unittest.TestCase):
    """Our scripts with a spec_lm that offers what the chapter's does and nothing else."""

    def run_over(self, module, then):
        attributes = CHIP + ("_vprog", "verify", "draft", "generate", "__class__", "__dict__")
        code = OVER_THE_LISTING.format(tools=str(paths.ROOT / "tools"), module=module, then=then,
                                       names=SPEC_LM, attributes=attributes)
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              timeout=300)

    def same_as_recorded(self, module, options, names):
        with tempfile.TemporaryDirectory() as folder:
            ended = self.run_over(module, f"{module}.main([*{options}, '--out', {folder!r}])")
            self.assertEqual((ended.returncode, ended.stderr), (0, ""))
            for name in names:
                recorded = json.loads((paths.ROOT / "out" / name).read_text(encoding="utf-8"))
                fresh = json.loads((Path(folder) / name).read_text(encoding="utf-8"))
                for row in (*recorded, *fresh) if isinstance(fresh, list) else ():
                    row.pop("rtl_cycles", None)             # without the simulators
                self.assertTrue(fresh == recorded, name)

    def test_the_five_checks(self):
        ended = self.run_over("spec_tests", "print(spec_tests.check_all())")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "[]\n", ""))

    def test_the_main_run(self):
        self.same_as_recorded("ch16_run", ["--sim", "none"], ["ch16_run.json"])

    def test_example_a(self):
        self.same_as_recorded("ch16_example_a", [], ["ch16_example_a.json"])

    def test_example_b(self):
        self.same_as_recorded("ch16_example_b", [], ["ch16_example_b.json"])


if __name__ == "__main__":
    unittest.main()
