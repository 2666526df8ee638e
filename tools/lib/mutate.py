"""The engine of the mutation tests: do the checks notice a fault that was put in on purpose?

A mutation script is a table and a call (mut_ch16.py, mut_ch16_compiler.py, mut_causal.py and
mut_ga2.py):

    MUTANTS = [
        Mutant("model/spec_lm.py", "seen = c + i + 1\\n", "seen = min(c + i + 2, c + m)\\n",
               "a row sees one later row", "causal_on_the_chip"),
    ]

    def main(argv=None):
        check = mutate.python_checks(["spec_tests.check_all()"])
        return mutate.run("mut_ch16", MUTANTS, [], ["model"], check, argv)

The unbroken copy must pass first. Then every mutant gets a private copy of the folders, with the
old text replaced by the new one, and one of four verdicts:

    caught        a check reported a problem
    crash         a check ended with an exception; at import only where the table expects a crash
    survived      no check noticed
    broken run    the old text is not there exactly once, the copy does not compile, import or end

The first two count as caught. A time-out is a broken run unless the table expects it. Equivalent
changes, each with the reason why no check can notice it, must survive and are not counted.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import cli
import paths
import proc

# file: relative to the root; old: text that is there exactly once; fault: in words; where: what the
# report must mention, such as the name of the check; expect: None, "crash" or "time-out";
# further: must be caught like the others, but is counted apart from them.
Mutant = namedtuple("Mutant", "file old new fault where expect further", defaults=(None, False))
# reason: why no check can notice the change.
Equivalent = namedtuple("Equivalent", "file old new change reason")
# What a check says of a copy: one of the kinds below, which check it was, and what it reported.
Finding = namedtuple("Finding", "kind check text")

PASSED = "passed"
PROBLEM = "problem"
CRASH = "crash"
CRASH_AT_IMPORT = "crash at import"
TIME_OUT = "time-out"
BROKEN = "broken run"

CAUGHT = "caught"
SURVIVED = "survived"

UNBROKEN_SECONDS = 600          # a limit that only something broken reaches
TEXT_COLUMNS = 160              # of a problem in the JSON file


def run(script, mutants, equivalents, folders, check, argv=None, root=cli.ROOT, closing=None):
    """The whole of a mutation script; returns its exit status, 0 if all is as the tables say.

    folders: what a copy consists of, relative to `root`.
    check(copy, seconds) -> Finding: runs the checks in the copy up to the first problem.
    closing(rows) -> what the script says of its results in front of the last lines.
    """
    arguments = parse(script, argv)
    jobs = select(list(mutants) + list(equivalents), arguments.only)
    if arguments.list:
        print(format_list(jobs))
        return 0
    finding, seconds = try_unbroken(root, folders, check)
    if finding.kind != PASSED:
        print(f"the unbroken copy fails: {describe(finding)}; no mutant was run")
        return 1
    print("the unbroken copy passes", flush=True)
    rows = []
    for row in try_all(jobs, root, folders, check, limit(seconds)):
        rows.append(row)
        print(format_row(row), flush=True)
    end = "\n".join(([closing(rows)] if closing else []) + [format_count(rows)])
    print(end)
    if not arguments.only:
        write(arguments.out, script, rows, end)
    return 0 if all(row["as declared"] for row in rows) else 1


def parse(script, argv):
    parser = argparse.ArgumentParser(prog=f"{script}.py",
                                     description="Put faults in on purpose: do the checks notice?")
    parser.add_argument("--list", action="store_true", help="print the table, run nothing")
    parser.add_argument("--only", type=int, nargs="+", metavar="N",
                        help="run these mutants alone and write no file")
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the .txt and the .json file (out/)")
    return parser.parse_args(argv)


def select(table, numbers):
    """[(number, mutant or equivalent)], numbered from 1; those of `numbers` if any are given."""
    jobs = list(enumerate(table, 1))
    if not numbers:
        return jobs
    for number in numbers:
        if not 1 <= number <= len(table):
            raise cli.UserError(f"--only {number}: there are mutants 1 to {len(table)}")
    return [job for job in jobs if job[0] in numbers]


# ---- measure -------------------------------------------------------------------------------------

def try_unbroken(root, folders, check):
    """(Finding, seconds) of a copy without a fault."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ga2-") as folder:
        copy = make_copy(root, folders, folder)
        finding = check(copy, UNBROKEN_SECONDS)
    return finding, time.monotonic() - began


def limit(seconds):
    """Seconds for a mutant, from those of the unbroken copy, which did not share the machine."""
    return 10 * seconds + 10


def try_all(jobs, root, folders, check, seconds):
    """Yield a row for each job, in their order, while a job runs on every core."""
    def one(job):
        return make_row(job, try_job(job[1], root, folders, check, seconds))

    ended = {}
    waiting = list(jobs)
    for job, row in proc.side_by_side(one, jobs, cli.cores()):
        ended[job] = row
        while waiting and waiting[0] in ended:
            yield ended[waiting.pop(0)]


def try_job(job, root, folders, check, seconds):
    """The Finding of a mutant or equivalent in a copy of its own."""
    with tempfile.TemporaryDirectory(prefix="ga2-") as folder:
        copy = make_copy(root, folders, folder)
        problem = apply(job, copy)
        if problem:
            return Finding(BROKEN, "", problem)
        finding = check(copy, seconds)
        return finding._replace(text=finding.text.replace(f"{copy}{os.sep}", ""))


def make_copy(root, folders, folder):
    """A copy of `folders` of `root` in `folder`; returns its root."""
    copy = Path(folder).resolve()
    for name in folders:
        shutil.copytree(Path(root) / name, copy / name, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__", "build"))
    return copy


def apply(job, copy):
    """Put the fault into the copy; returns what is wrong with it, "" if nothing is."""
    path = copy / job.file
    if not path.is_file():
        return f"there is no file {job.file} in the copied folders"
    text = path.read_bytes().decode("utf-8")
    found = text.count(job.old)
    if found != 1:
        return f"the old text is in {job.file} {found} times, not once: {_first_line(job.old)}"
    if job.old == job.new:
        return f"the new text equals the old one: {_first_line(job.old)}"
    path.write_bytes(text.replace(job.old, job.new).encode("utf-8"))
    return ""


def make_row(job, finding):
    """A job's line of the results, as plain data without times."""
    number, entry = job
    equivalent = isinstance(entry, Equivalent)
    verdict = judge(finding, None if equivalent else entry.expect)
    if equivalent:
        declared = verdict == SURVIVED
    else:
        declared = verdict in (CAUGHT, CRASH) and entry.where in describe(finding)
    return {
        "number": number,
        "file": entry.file,
        "fault": entry.change if equivalent else entry.fault,
        "equivalent": entry.reason if equivalent else None,
        "further": not equivalent and entry.further,
        "where": None if equivalent else entry.where,
        "verdict": verdict,
        "check": finding.check,
        "report": _first_line(finding.text),
        "as declared": declared,
    }


def judge(finding, expect):
    """The verdict of a finding, where the table expects None, "crash" or "time-out"."""
    if finding.kind == PASSED:
        return SURVIVED
    if finding.kind == PROBLEM or (finding.kind == TIME_OUT and expect == "time-out"):
        return CAUGHT
    if finding.kind == CRASH or (finding.kind == CRASH_AT_IMPORT and expect == "crash"):
        return CRASH
    return BROKEN


def describe(finding):
    """A finding in one line: "check: what it reported"."""
    return ": ".join(part for part in (finding.check, finding.text) if part)


def _first_line(text):
    lines = text.strip().splitlines() or [""]
    return lines[0][:TEXT_COLUMNS]


# ---- checks in Python ----------------------------------------------------------------------------

# Run by `python -c` in the copy, which is first on the import path. Prints the Finding as JSON.
DRIVER = r"""
import importlib, json, os, sys

def first_problem(expressions):
    for expression in expressions:
        name = expression.partition("(")[0]
        crash = "crash at import"
        try:
            module = importlib.import_module(name.partition(".")[0])
            if not module.__file__.startswith(os.getcwd()):
                return "broken run", name, f"{module.__name__} was not imported from the copy"
            crash = "crash"
            result = eval(expression, {module.__name__: module})
            for problem in result[0] if isinstance(result, tuple) else result:
                return "problem", name, str(problem)
        except SyntaxError as error:
            return "broken run", name, f"{type(error).__name__}: {error}"
        except BaseException as error:
            return crash, name, f"{type(error).__name__}: {error}"
    return "passed", "", ""

print("\n" + json.dumps(first_problem(sys.argv[1:])))
"""


def python_checks(expressions):
    """A check made of Python functions that are called one after the other in a copy.

    expressions: such as "capra_tests.check_slices(range(100))". A call returns the problems, or a
    tuple that starts with them; a generator ends at the first one.
    """
    def check(copy, seconds):
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0",
                   PYTHONPATH=os.pathsep.join(str(copy / room) for room in paths.ROOMS))
        command = [sys.executable, "-c", DRIVER, *expressions]
        status, output = proc.execute(command, copy, seconds, env)
        if status == proc.TIMED_OUT:
            return Finding(TIME_OUT, "", "stopped without an end")
        try:
            return Finding(*json.loads(output.splitlines()[-1]))
        except (IndexError, ValueError, TypeError):
            return Finding(BROKEN, "", f"exit status {status} without a result")

    return check


# ---- format and write ----------------------------------------------------------------------------

def format_list(jobs):
    """The table, a line a mutant."""
    lines = []
    for number, entry in jobs:
        if isinstance(entry, Equivalent):
            lines.append(f"{number:3}  {entry.file}: {entry.change} [equivalent: {entry.reason}]")
        else:
            expected = f"a {entry.expect}" if entry.expect else ""
            note = ", ".join(part for part in (entry.where, expected) if part)
            lines.append(f"{number:3}  {entry.file}: {entry.fault} [{note}]")
    return "\n".join(lines)


def format_row(row):
    """One line: the verdict, the fault, and the check that caught it or what went wrong."""
    if row["equivalent"]:
        note = f"equivalent: {row['equivalent']}"
        if row["verdict"] != SURVIVED:
            note = f"listed as equivalent, but {row['check']} {row['report']}".rstrip()
    elif row["verdict"] == CAUGHT:
        note = row["check"] or row["report"]
    elif row["verdict"] == CRASH:
        note = f"{row['check']}: {row['report'].partition(':')[0]}"
    elif row["verdict"] == SURVIVED:
        note = "no check noticed"
    else:
        note = row["report"]
    if row["verdict"] in (CAUGHT, CRASH) and not row["equivalent"] and not row["as declared"]:
        note += f"; the table says {row['where']}"
    return f"{row['number']:3}  {row['verdict']:<10}  {row['fault']} [{note}]"


def format_count(rows):
    """The last line: `N of M caught`; before it, what further mutants and the equivalents did."""
    mutants = [row for row in rows if not row["equivalent"]]
    equivalents = [row for row in rows if row["equivalent"]]
    further = [row for row in mutants if row["further"]]
    counted = [row for row in mutants if not row["further"]]
    lines = []
    if further:
        lines.append(f"{count_caught(further)} of {len(further)} further mutants caught")
    if equivalents:
        survived = sum(row["verdict"] == SURVIVED for row in equivalents)
        lines.append(f"{survived} of {len(equivalents)} equivalents survived")
    elsewhere = sum(row["verdict"] in (CAUGHT, CRASH) and not row["as declared"] for row in mutants)
    if elsewhere:
        lines.append(f"{elsewhere} caught elsewhere than the table says")
    if counted or not lines:
        lines.append(f"{count_caught(counted)} of {len(counted)} caught")
    return "\n".join(lines)


def count_caught(rows):
    return sum(row["verdict"] in (CAUGHT, CRASH) for row in rows)


def write(folder, script, rows, end):
    """folder/<script>.txt and .json: the same bytes from every run with the same verdicts."""
    lines = ["the unbroken copy passes"] + [format_row(row) for row in rows] + [end]
    cli.write_text(folder / f"{script}.txt", "\n".join(lines) + "\n")
    cli.write_json(folder / f"{script}.json", rows)
