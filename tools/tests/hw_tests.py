"""Tests of tools/hw.py, on Verilog of a few lines: what is built, kept, run and reported."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import paths
import cli
import hw
import proc

# A testbench that does as it is told by a plusarg.
ACTOR = """
module actor;
  integer file, code;
  reg [31:0] first;
  reg [8*200-1:0] path;
  initial begin
    path = "out/ga2_programs.hex";
    code = $value$plusargs("programs=%s", path);
    file = $fopen(path, "r");
    if (file != 0) code = $fscanf(file, "%h", first);
    if (file != 0) $display("first word %0d", first);
`ifdef EXTW
    $display("EXTW %0d", `EXTW);
`endif
    if ($test$plusargs("silent")) $finish;
    else if ($test$plusargs("endless")) forever #1 file = 0;
    else if ($test$plusargs("fatal")) begin
      $display("FAIL 1 of 2 programs");
      $fatal;
    end else begin
      if ($test$plusargs("fail")) $display("FAIL 1 of 2 programs");
      else $display("PASS 2 programs, 30 cycles");
      if ($test$plusargs("twice")) $display("PASS 2 programs, 30 cycles");
      if ($test$plusargs("crash")) $fatal;
      $finish;
    end
  end
endmodule
"""

# The chip's testbench, as far as hw.replay() knows it: a program is one word, its total of cycles.
# With a LAT that is not 0 the last line does not fit the others.
REPLAYED = """
module ga2_tb;
  integer file, code, i;
  reg [31:0] count, total, sum;
  reg [8*200-1:0] path;
  initial begin
    code = $value$plusargs("programs=%s", path);
    file = $fopen(path, "r");
    code = $fscanf(file, "%h", count);
    sum = 0;
    for (i = 0; i < count; i = i + 1) begin
      code = $fscanf(file, "%h", total);
      $display("COUNTERS %0d %0d 2 3 4 5", i, total);
      sum = sum + total;
    end
    $display("PASS %0d programs, %0d cycles", count, sum + `LAT);
    $finish;
  end
endmodule
"""


class Folder(unittest.TestCase):
    """A project of one source in a folder whose name has a space in it."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name) / "my chip"
        self.write("tb/actor.v", ACTOR)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def built(self):
        return sorted((self.root / "out" / "build").glob("*"))

    def icarus(self, *plusargs, **options):
        return hw.sim_icarus(["tb/actor.v"], "actor", root=self.root, plusargs=plusargs, **options)


class Missing(Folder):
    def test_without_simulators_every_call_says_what_to_install(self):
        install = "install with `sudo apt-get install iverilog verilator g++ make`"
        with mock.patch.dict(os.environ, PATH=""):
            self.assertEqual(hw.missing(), ["iverilog", "verilator", "g++", "make"])
            self.assertEqual(hw.missing(["icarus"]), ["iverilog"])
            self.assertEqual(hw.not_checked(["icarus"]),
                             f"RTL not checked: missing iverilog; {install}")
            self.assertEqual(self.icarus(), (127, f"icarus: missing iverilog; {install}\n"))
            self.assertEqual(hw.sim_verilator(["tb/actor.v"], "actor", root=self.root),
                             (127, f"verilator: missing verilator, g++, make; {install}\n"))
            replayed = hw.replay([[5]], ["icarus"], root=self.root)
            self.assertEqual(replayed["icarus"].status, 127)

    def test_an_old_simulator_counts_as_missing(self):
        answers = {("iverilog", "-V"): (0, "Icarus Verilog version 10.3 (stable)\nCopyright\n"),
                   ("verilator", "--version"): (0, "Verilator 5.020 2024-01-01 rev v5.020\n")}
        self.addCleanup(hw.version.cache_clear)
        hw.version.cache_clear()
        with mock.patch("shutil.which", return_value="/bin/there"), \
                mock.patch("proc.execute", lambda command, **rest: answers[tuple(command)]):
            self.assertEqual(hw.missing(), ["iverilog 11.0 or newer (there is Icarus Verilog "
                                            "version 10.3 (stable))"])

    def test_a_folder_for_temporary_files_that_takes_none_is_named(self):
        self.addCleanup(setattr, tempfile, "tempdir", None)
        self.addCleanup(hw.version.cache_clear)
        hw.version.cache_clear()
        tempfile.tempdir = None
        with mock.patch("shutil.which", return_value="/bin/there"), \
                mock.patch.dict(os.environ, TMPDIR="/nowhere/tmp"):
            with self.assertRaises(cli.UserError) as caught:
                hw.missing(["icarus"])
        self.assertEqual(str(caught.exception), "TMPDIR=/nowhere/tmp: no file can be written "
                         "there; name a folder that takes files, or unset TMPDIR")


class Simulators:
    """What both simulators must do; one class below for each. All use what is built first."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.root = Path(cls.scratch.name) / "my chip"
        (cls.root / "tb").mkdir(parents=True)
        (cls.root / "out").mkdir()
        (cls.root / "tb" / "actor.v").write_text(ACTOR)
        (cls.root / "out" / "ga2_programs.hex").write_text("00000007\n")
        # Nothing is built yet: two runs build the same at the same moment.
        cls.first = list(proc.side_by_side(lambda run: cls.sim(), [0, 1], 2))

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    @classmethod
    def sim(cls, *plusargs, **options):
        status, text = cls.simulate(["tb/actor.v"], "actor", root=cls.root, plusargs=plusargs,
                                    **options)
        # Verilator tells where a simulation ended.
        lines = [line for line in text.splitlines() if "actor.v:" not in line]
        return status, [line for line in lines if line not in ("Aborting...", "Aborted")]

    def test_a_pass_is_status_0_and_the_default_image_is_read_below_the_root(self):
        self.assertEqual(self.sim(), (0, ["first word 7", "PASS 2 programs, 30 cycles"]))

    def test_another_image_may_have_a_space_in_its_path(self):
        image = self.root / "out" / "other.hex"
        image.write_text("00000009\n")
        for path in (image, "out/other.hex"):
            self.assertEqual(self.sim(programs=path)[1][0], "first word 9")

    def test_it_is_built_once(self):
        with mock.patch("hw._build") as build:
            self.assertEqual(self.sim()[0], 0)
        build.assert_not_called()

    def test_a_fail_is_a_failure_whatever_the_exit_status(self):
        self.assertEqual(self.sim("fail"), (1, ["first word 7", "FAIL 1 of 2 programs"]))
        status, lines = self.sim("fatal")
        self.assertNotEqual(status, 0)
        self.assertEqual(lines[1], "FAIL 1 of 2 programs")

    def test_what_ends_otherwise_than_in_one_verdict_is_a_failure(self):
        for plusarg, problem in (
                ("silent", "exit status 0 and 0 lines starting PASS or FAIL, not one"),
                ("twice", "exit status 0 and 2 lines starting PASS or FAIL, not one"),
                ("crash", "PASS, but exit status {}"),
                ("endless", "stopped after 0.5 s without an end")):
            status, lines = self.sim(plusarg, timeout=0.5 if plusarg == "endless" else 60)
            self.assertNotEqual(status, 0)
            self.assertEqual(lines[-1], f"{self.name}: {problem.format(status)}")

    def test_sources_that_do_not_compile_are_told_with_their_line(self):
        (self.root / "tb" / "bad.v").write_text("module bad;\n  wire = 1;\nendmodule\n")
        status, text = self.simulate(["tb/bad.v"], "bad", root=self.root)
        self.assertNotEqual(status, 0)
        self.assertIn("tb/bad.v:2:", text)
        self.assertTrue(text.endswith(f"{self.name}: the sources do not compile (exit status "
                                      f"{status})\n"))

    def test_two_runs_may_build_at_the_same_moment(self):
        self.assertEqual([result for _, result in self.first], 2 * [
            (0, ["first word 7", "PASS 2 programs, 30 cycles"])])


@unittest.skipIf(hw.missing(["icarus"]), hw.not_checked(["icarus"]))
class Icarus(Simulators, unittest.TestCase):
    name = "icarus"
    simulate = staticmethod(hw.sim_icarus)


@unittest.skipIf(hw.missing(["verilator"]), hw.not_checked(["verilator"]))
class Verilator(Simulators, unittest.TestCase):
    name = "verilator"
    simulate = staticmethod(hw.sim_verilator)


@unittest.skipIf(hw.missing(["icarus"]), hw.not_checked(["icarus"]))
class Builds(Folder):
    def test_another_source_define_or_version_is_another_build(self):
        self.write("tb/actor.v", ACTOR + "// as it was\n")
        self.icarus()
        self.icarus()
        self.assertEqual(len(self.built()), 1)
        self.icarus(defines=["DUMP"])
        self.assertEqual(len(self.built()), 2)
        self.write("tb/actor.v", ACTOR + "// changed\n")
        self.icarus()
        self.assertEqual(len(self.built()), 3)
        with mock.patch("hw.version", return_value="Icarus Verilog version 99.0"):
            self.icarus()
        self.assertEqual(len(self.built()), 4)

    def test_an_out_that_cannot_be_written_is_told(self):
        (self.root / "out").write_text("a file where a folder should be")
        status, text = self.icarus()
        self.assertEqual((status, text),
                         (126, f"icarus: Not a directory: {self.root}/out/build\n"))

    def test_a_damaged_build_is_built_anew_once(self):
        self.icarus()
        whole = self.built()[0].read_bytes()
        for content in (b"", whole[:-1]):
            self.built()[0].write_bytes(content)
            with mock.patch("hw._build", wraps=hw._build) as build:
                self.assertEqual([self.icarus()[0], self.icarus()[0]], [0, 0])
            self.assertEqual((build.call_count, len(self.built())), (1, 1))

    def test_a_build_that_is_cut_off_leaves_nothing_to_use(self):
        with mock.patch("hw.BUILD_SECONDS", 0):
            self.assertEqual(self.icarus(),
                             (124, "icarus: the build was stopped after 0 s\n"))
        with mock.patch("os.replace", side_effect=KeyboardInterrupt):
            with self.assertRaises(KeyboardInterrupt):
                self.icarus()
        self.assertEqual(self.built(), [])
        self.assertEqual(self.icarus()[0], 0)

    def test_a_missing_source_is_named(self):
        self.assertEqual(hw.sim_icarus(["tb/none.v"], "actor", root=self.root), (
            126, f"icarus: No such file or directory: {self.root}/tb/none.v\n"))

    def test_the_external_memory_is_as_large_as_the_model_says(self):
        with mock.patch.dict(os.environ, GA2_EXT="512"):
            self.assertIn("EXTW 512\n", self.icarus()[1])
            self.assertIn("EXTW 64\n", self.icarus(defines=["EXTW=64"])[1])
        with mock.patch.dict(os.environ):
            os.environ.pop("GA2_EXT", None)
            self.assertNotIn("EXTW", self.icarus()[1])


@unittest.skipIf(hw.missing(), hw.not_checked())
class ReplayPrograms(Folder):
    def setUp(self):
        super().setUp()
        self.write("tb/ga2_tb.v", REPLAYED)
        for name, files in (("RTL", []), ("TB", ["tb/ga2_tb.v"])):
            patch = mock.patch.object(hw, name, files)
            patch.start()
            self.addCleanup(patch.stop)

    def test_records_are_replayed_in_parts_and_reported_in_order(self):
        for cores, sims in ((1, hw.SIMULATORS), (2, ["icarus"]), (3, ["icarus"]), (8, ["icarus"])):
            with mock.patch.object(hw.cli, "cores", lambda: cores):
                replayed = hw.replay([[5], [3], [9], [7], [1]], sims, lat=0, root=self.root)
            self.assertEqual(list(replayed), list(sims))
            for result in replayed.values():
                self.assertEqual((result.status, result.programs, result.cycles), (0, 5, 25))
                self.assertEqual(result.counters, [(n, 2, 3, 4, 5) for n in (5, 3, 9, 7, 1)])

    def test_a_failure_names_programs_by_their_place_in_the_whole_replay(self):
        self.write("tb/ga2_tb.v", REPLAYED.replace(
            "$display(\"PASS", "$display(\"FAIL program 1: stuck\"); $fatal; $display(\"PASS"))
        with mock.patch.object(hw.cli, "cores", lambda: 2):
            result = hw.replay([[5]] * 6, ["icarus"], lat=0, root=self.root)["icarus"]
        self.assertNotEqual(result.status, 0)
        self.assertIn("FAIL program 1: stuck\n", result.output)
        self.assertIn("FAIL program 4: stuck\n", result.output)

    def test_the_status_is_that_of_the_first_part_that_failed(self):
        parts = [hw.Replay(status, "", 1, 1, []) for status in (0, 124, 1)]
        self.assertEqual(hw._join(list(enumerate(parts))).status, 124)

    def test_counters_that_do_not_add_up_are_a_failure(self):
        result = hw.replay([[10]], ["icarus"], lat=1, root=self.root)["icarus"]
        self.assertEqual((result.status, result.programs, result.counters), (1, None, None))
        self.assertTrue(result.output.endswith(
            "icarus: the PASS line and the COUNTERS lines do not tell the same\n"))

    def test_a_failure_has_its_output_and_no_numbers(self):
        self.write("tb/ga2_tb.v", "module ga2_tb;\n  wire = 1;\nendmodule\n")
        result = hw.replay([[10]], ["icarus"], root=self.root)["icarus"]
        self.assertNotEqual(result.status, 0)
        self.assertIn("the sources do not compile", result.output)
        self.assertIsNone(result.cycles)


if __name__ == "__main__":
    unittest.main()
