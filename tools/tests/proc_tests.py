"""Tests of tools/lib/proc.py: child processes end, and take along what they started."""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import paths
import cli
import proc


def shell(command, timeout=30):
    return proc.execute(["sh", "-c", command], cli.ROOT, timeout)


class Execute(unittest.TestCase):
    def test_status_and_both_outputs_are_returned(self):
        self.assertEqual(shell("echo out; echo err >&2; exit 3"), (3, "out\nerr\n"))

    def test_a_child_ended_by_a_signal_gives_128_and_the_signal(self):
        self.assertEqual(shell("echo begun; kill -SEGV $$"), (128 + 11, "begun\n"))

    def test_output_that_is_no_utf8_is_kept_readable(self):
        self.assertEqual(shell(r"printf 'a\377b'"), (0, "a\ufffdb"))

    def test_a_command_that_does_not_exist_is_an_oserror(self):
        with self.assertRaises(FileNotFoundError):
            proc.execute(["/nowhere/iverilog"], cli.ROOT, 1)

    def test_a_time_out_ends_the_whole_group(self):
        # The sleep holds our pipe: were it to live on, execute() would wait for it.
        began = time.monotonic()
        self.assertEqual(shell("echo begun; sleep 60 & wait", timeout=0.3),
                         (proc.TIMED_OUT, "begun\n"))
        self.assertLess(time.monotonic() - began, 20)


class SideBySide(unittest.TestCase):
    def test_items_come_as_they_end(self):
        seen = list(proc.side_by_side(lambda seconds: shell(f"sleep {seconds}"), [0.5, 0], 2))
        self.assertEqual(seen, [(0, (0, "")), (0.5, (0, ""))])

    def test_no_more_than_the_workers_run_at_a_time(self):
        seen = list(proc.side_by_side(lambda seconds: shell(f"sleep {seconds}"), [0.3, 0], 1))
        self.assertEqual([item for item, _ in seen], [0.3, 0])

    def test_giving_up_ends_the_children_and_drops_what_has_not_begun(self):
        begun = []

        def work(seconds):
            begun.append(seconds)
            return shell(f"sleep {seconds}")

        began = time.monotonic()
        for _ in proc.side_by_side(work, [0, 60, 61, 62], 2):
            break
        self.assertLess(time.monotonic() - began, 20)
        self.assertLess(len(begun), 4)

    def test_ctrl_c_ends_the_children(self):
        for work, count in (("nap(0)", 1), ("list(proc.side_by_side(nap, [0, 1], 2))", 2)):
            with self.subTest(work), tempfile.TemporaryDirectory() as folder:
                body = ("import os, signal, threading, paths, cli, proc\n"
                        "def nap(number):\n"
                        "    command = ['sh', '-c', f'echo $$ >{number}; exec sleep 60']\n"
                        f"    return proc.execute(command, {folder!r}, None)\n"
                        "stop = lambda: os.kill(os.getpid(), signal.SIGINT)\n"
                        "threading.Timer(0.5, stop).start()\n"
                        f"raise SystemExit(cli.run(lambda: {work}))\n")
                ended = subprocess.run([sys.executable, "-c", body], capture_output=True,
                                       cwd=cli.ROOT / "tools" / "lib", text=True, timeout=20)
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr),
                                 (130, "", "interrupted\n"))
                children = [int(path.read_text()) for path in Path(folder).iterdir()]
                self.assertEqual(len(children), count)
                for child in children:
                    with self.assertRaises(ProcessLookupError):
                        os.kill(child, 0)


if __name__ == "__main__":
    unittest.main()
