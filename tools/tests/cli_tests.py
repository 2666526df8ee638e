"""Tests of tools/lib/cli.py: exit statuses, files, tables, work on all cores."""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import paths
import cli


def script(body, command="exec {python} {file}"):
    """Run a script that imports cli in the shell; return the ended process."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "script.py"
        file.write_text("import sys\nimport cli\n" + body, encoding="utf-8")
        return subprocess.run(["bash", "-c", command.format(python=sys.executable, file=file)],
                              env={**os.environ, "PYTHONPATH": str(cli.ROOT / "tools" / "lib")},
                              capture_output=True, text=True, timeout=60)


def double(number):
    return 2 * number


class Run(unittest.TestCase):
    def ends(self, body, status, out="", err=""):
        ended = script(body + "\nsys.exit(cli.run(main))\n")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (status, out, err))

    def test_the_exit_status_is_what_main_returns(self):
        self.ends("def main():\n    print('seen')\n    return 3\n", 3, out="seen\n")

    def test_a_user_error_is_one_line_and_status_2(self):
        self.ends("def main():\n    raise cli.UserError('k = 0; k is 1 or more')\n", 2,
                  err="error: k = 0; k is 1 or more\n")

    def test_what_the_model_refuses_is_one_line_too(self):
        self.ends("def main():\n    import ga2_isa\n"
                  "    ga2_isa.build('LD', dst=0, src=0, len=0)\n", 2,
                  err="error: LD: len = 0 must be an integer in 1..65535\n")

    def test_a_memory_size_that_is_none_is_one_line_while_importing(self):
        for size in ("0", "abc", "70000", "", "٨١٩٢"):
            with mock.patch.dict(os.environ, GA2_EXT=size):
                ended = script("import ga2_isa\n")
            self.assertEqual((ended.returncode, ended.stderr.count("\n")), (1, 1))
            self.assertTrue(ended.stderr.startswith(f"error: GA2_EXT={size}: the external memory "
                                                    "has 1 to 65536 words"), ended.stderr)

    def test_any_other_error_is_a_bug_and_keeps_its_traceback(self):
        for body in ("1 / 0\n", "sys.exit(cli.run(lambda: 1 / 0))\n"):
            ended = script(body)
            self.assertEqual(ended.returncode, 1)
            self.assertTrue(ended.stderr.startswith("Traceback"), ended.stderr)
            self.assertTrue(ended.stderr.endswith("ZeroDivisionError: division by zero\n"))

    def test_an_error_of_the_system_is_one_line(self):
        self.ends("def main():\n    open('/nonexistent/file')\n", 2,
                  err="error: [Errno 2] No such file or directory: '/nonexistent/file'\n")

    def test_kill_unwinds(self):
        self.ends("import os, signal\ndef main():\n    try:\n"
                  "        os.kill(os.getpid(), signal.SIGTERM)\n"
                  "    finally:\n        print('unwound')\n", 128 + signal.SIGTERM,
                  out="unwound\n", err="interrupted\n")

    def test_a_reader_that_stops_early_is_silent(self):
        for lines in (1, 100000):  # fails in the flush at the end; fails in print
            with self.subTest(lines=lines):
                body = (f"import time\ndef main():\n    time.sleep(0.1)\n"
                        f"    for line in range({lines}):\n        print(line)\n"
                        f"sys.exit(cli.run(main))\n")
                ended = script(body, "{python} {file} | true; echo ${{PIPESTATUS[0]}}")
                self.assertEqual((ended.stdout, ended.stderr), ("141\n", ""))


class Write(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_text_is_written_as_it_is_and_replaces_the_old(self):
        path = self.folder / "table.txt"
        cli.write_text(path, "old\n")
        cli.write_text(str(path), "k ≤ 5\n")
        self.assertEqual(path.read_bytes(), "k ≤ 5\n".encode("utf-8"))
        self.assertEqual(self.names(), ["table.txt"])

    def test_json_is_read_back_and_ends_its_line_and_folders_are_made(self):
        cli.write_json(self.folder / "out" / "a.json", {"grid": [1, 2.5], "draft": None})
        text = (self.folder / "out" / "a.json").read_text()
        self.assertEqual(json.loads(text), {"grid": [1, 2.5], "draft": None})
        self.assertTrue(text.endswith("}\n"))

    def test_a_failed_write_leaves_the_old_file_and_nothing_else(self):
        path = self.folder / "a.txt"
        cli.write_text(path, "old")
        with self.assertRaises(UnicodeEncodeError):
            cli.write_text(path, "new \udc80")
        with mock.patch("os.replace", side_effect=OSError(28, "No space left on device")):
            with self.assertRaises(cli.UserError):
                cli.write_text(path, "new")
        self.assertEqual((path.read_text(), self.names()), ("old", ["a.txt"]))

    def test_a_folder_that_cannot_be_written_is_one_sentence(self):
        blocked = self.folder / "out"
        blocked.write_text("a file where a folder should be")
        with self.assertRaises(cli.UserError) as caught:
            cli.write_text(blocked / "build" / "a.txt", "a")
        self.assertEqual(str(caught.exception),
                         f"cannot write {blocked}/build/a.txt: Not a directory; make the folder "
                         f"{blocked}/build writable and run again")

    def test_two_writers_at_once_leave_one_whole_file(self):
        body = (f"text = sys.argv[1] * 200000\n"
                f"for again in range(30):\n"
                f"    cli.write_text({str(self.folder / 'a.txt')!r}, text)\n")
        ended = script(body, "{python} {file} A & {python} {file} B & wait")
        self.assertEqual((ended.stdout, ended.stderr), ("", ""))
        self.assertIn((self.folder / "a.txt").read_text(), ("A" * 200000, "B" * 200000))
        self.assertEqual(self.names(), ["a.txt"])


class FormatTable(unittest.TestCase):
    def test_numbers_are_flush_right_and_words_flush_left(self):
        rows = [["plain", 1, "29,986", "-"], ["k = 3", 12, "330", "97 %"]]
        self.assertEqual(cli.format_table(["run", "k", "cycles", "accepted"], rows),
                         "run     k  cycles  accepted\n"
                         "-----  --  ------  --------\n"
                         "plain   1  29,986         -\n"
                         "k = 3  12     330      97 %")

    def test_a_table_without_rows_is_its_header(self):
        self.assertEqual(cli.format_table(["a", "bc"], []), "a  bc\n-  --")

    def test_a_row_of_another_length_is_refused(self):
        with self.assertRaises(ValueError) as caught:
            cli.format_table(["a", "b"], [[1]])
        self.assertEqual(str(caught.exception), "row ['1'] has 1 cells, the header has 2")


class Progress(unittest.TestCase):
    def test_it_is_shown_on_a_terminal_only(self):
        for terminal, shown in ((True, "at work\n"), (False, "")):
            stderr = io.StringIO()
            stderr.isatty = lambda: terminal
            with mock.patch("sys.stderr", stderr):
                cli.progress("at work")
            self.assertEqual(stderr.getvalue(), shown)


class Parallel(unittest.TestCase):
    def test_results_are_in_the_order_of_the_items(self):
        self.assertEqual(cli.parallel(double, range(20)), list(range(0, 40, 2)))

    def test_one_item_no_item_or_one_core_need_no_pool(self):
        with mock.patch("multiprocessing.get_context") as pool:
            self.assertEqual(cli.parallel(double, [4]), [8])
            self.assertEqual(cli.parallel(double, []), [])
            with mock.patch("cli.cores", return_value=1):
                self.assertEqual(cli.parallel(double, iter([4, 5])), [8, 10])
        pool.assert_not_called()

    def test_an_error_in_a_worker_is_raised_here_with_its_traceback(self):
        with self.assertRaises(TypeError) as caught:
            cli.parallel(double, [1, None, 2])
        self.assertIn("return 2 * number", str(caught.exception.__cause__))

    def test_every_core_takes_the_next_item_as_it_ends_one(self):
        with mock.patch("cli.cores", return_value=2):
            naps = cli.parallel(nap, [0.5, 0.1, 0.1, 0.1])
        self.assertEqual([worker == naps[0] for worker in naps], [True, False, False, False])


def nap(seconds):
    time.sleep(seconds)
    return os.getpid()


class Interrupt(unittest.TestCase):
    """Ctrl-C ends ch16_run at once, in one line, whatever it is doing, and leaves nothing."""

    BODY = ("import sys; sys.path.insert(0, 'tools'); import paths\n"
            "sys.argv[1:] = ['--out', sys.argv[1]]\n"
            "script = compile(open('tools/ch16_run.py').read(), 'ch16_run.py', 'exec')\n"
            "print('begun', flush=True)\n"
            "exec(script)\n")

    def test_at_several_moments(self):
        for delay in (0, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 2.4):
            with self.subTest(delay=delay), tempfile.TemporaryDirectory() as folder:
                began = subprocess.Popen([sys.executable, "-c", self.BODY, folder], cwd=cli.ROOT,
                                         env={**os.environ, "TMPDIR": folder}, text=True,
                                         start_new_session=True, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE)
                began.stdout.readline()
                time.sleep(delay)
                os.killpg(began.pid, signal.SIGINT)  # as the terminal does
                try:
                    printed, told = began.communicate(timeout=10)
                finally:
                    began.kill()
                self.assertEqual((began.returncode, printed, told), (130, "", "interrupted\n"))
                self.assertEqual((running(folder), os.listdir(folder)), ([], []))


def running(folder):
    """The processes, of whatever group, that were started with this TMPDIR."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}\0".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:  # it has ended, or is another user's
            pass
    return found


if __name__ == "__main__":
    unittest.main()
