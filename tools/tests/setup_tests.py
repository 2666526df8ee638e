"""Tests of tools/lib/setup.py: quick and silent, or one line; never a failure."""

import contextlib
import io
import unittest
from unittest import mock

import paths
import setup

LINE = ("RTL not checked: missing iverilog; install with "
        "`sudo apt-get install iverilog verilator g++ make`\n")
ANNOUNCED = ("installing with apt-get: iverilog verilator g++ make (`GA2_SETUP=no` installs "
             "nothing)\n")


class Setup(unittest.TestCase):
    def sets_up(self, programs, there=False, user=0, works=(), enough=True, wanted=""):
        """Run setup; return (printed, commands tried).

        programs: those on PATH. there: whether the simulators are at first. works: the commands, by
        their last word, that succeed. enough: whether an install that succeeds is all it takes.
        """
        state = {"missing": [] if there else ["iverilog"]}
        tried = []

        def execute(command, cwd, timeout):
            tried.append(command)
            succeeds = command[-1] in works
            if succeeds and enough and "install" in command:
                state["missing"] = []
            return (0 if succeeds else 1), ""

        printed = io.StringIO()
        with mock.patch("hw.missing", lambda *sims: state["missing"]), \
                mock.patch("shutil.which", lambda name: name if name in programs else None), \
                mock.patch("os.geteuid", return_value=user), \
                mock.patch.dict("os.environ", GA2_SETUP=wanted), \
                mock.patch("proc.execute", execute), contextlib.redirect_stdout(printed):
            self.assertEqual(setup.main([]), 0)
        return printed.getvalue(), tried

    def test_nothing_is_done_when_the_simulators_are_there(self):
        self.assertEqual(self.sets_up(["apt-get", "sudo"], there=True), ("", []))

    def test_without_apt_get_one_line_says_what_to_install(self):
        self.assertEqual(self.sets_up(["sudo"]), (LINE, []))

    def test_root_installs_and_says_so_before(self):
        printed, tried = self.sets_up(["apt-get"], works=["make"])
        self.assertEqual(printed, ANNOUNCED)
        self.assertEqual([command[-6:] for command in tried], [
            ["install", "-y", "iverilog", "verilator", "g++", "make"]])

    def test_nothing_is_installed_where_that_is_not_wanted(self):
        self.assertEqual(self.sets_up(["apt-get"], works=["make"], wanted="no"), (LINE, []))

    def test_an_install_that_fails_or_is_too_old_is_told_in_one_line(self):
        printed, _ = self.sets_up(["apt-get"], works=["make"], enough=False)
        self.assertEqual(printed, ANNOUNCED + LINE)
        printed, tried = self.sets_up(["apt-get"], works=["update"])
        self.assertEqual(printed, ANNOUNCED + LINE)
        self.assertEqual([command[-1] for command in tried], ["make", "update", "make"])

    def test_another_user_installs_with_sudo_that_asks_no_password(self):
        printed, tried = self.sets_up(["apt-get", "sudo"], user=1000, works=["true", "make"])
        self.assertEqual(printed, ANNOUNCED)
        self.assertEqual([command[:3] for command in tried],
                         [["sudo", "-n", "true"], ["sudo", "-n", "env"]])

    def test_without_the_right_to_install_one_line_says_what_to_install(self):
        self.assertEqual(self.sets_up(["apt-get"], user=1000), (LINE, []))
        self.assertEqual(self.sets_up(["apt-get", "sudo"], user=1000),
                         (LINE, [["sudo", "-n", "true"]]))


if __name__ == "__main__":
    unittest.main()
