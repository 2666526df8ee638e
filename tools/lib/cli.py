"""What the scripts in tools/ share: the paths, exit statuses, files, tables and work on all cores.

A script starts with `import paths`, for the import path, and ends with `sys.exit(cli.run(main))`.
"""

import argparse
import json
import multiprocessing
import os
import re
import secrets
import signal
import sys
import traceback
from pathlib import Path

from paths import ENDING, ROOT
from refusal import Refusal

OUT = ROOT / "out"

NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?( ?[%x])?|-?")


class UserError(Refusal):
    """Something the person at the keyboard can put right: told in one sentence, no traceback."""


class Parser(argparse.ArgumentParser):
    """A parser that tells a bad option in one sentence, as all that is refused."""

    def error(self, message):
        raise UserError(message)


def run(main):
    """Call main() and return the exit status of the script.

    What the project refuses and an error of the system: one line on stderr, status 2. Ctrl-C: one
    line, 130. A reader that closes our stdout early (`| head -1`) is no error worth a word: 141, as
    the shell reports it.
    """
    try:
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Python flushes stdout once more on its way out; give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt as stop:
        print("interrupted", file=sys.stderr)
        return 128 + stop.args[0]
    except (Refusal, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def tell(kind, error, trace):
    """The last word on what a script meets while it is still importing."""
    if issubclass(kind, Refusal):
        print(f"error: {error}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = tell


def write_text(path, text):
    """Write the whole file or leave the old one: write beside it, then move it into place."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(beside, "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; make the folder "
                        f"{path.parent} writable and run again") from error


def write_json(path, data):
    """Write `data` as indented JSON; see write_text."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def format_table(header, rows):
    """The rows as text in columns under the header, without a newline at the end.

    Cells are shown with str(). A column of numbers (3, 12,330, -1.5, 85 %, 2.4x) is flush right.
    """
    table = [[str(cell) for cell in row] for row in [header, *rows]]
    for row in table:
        if len(row) != len(header):
            raise ValueError(f"row {row} has {len(row)} cells, the header has {len(header)}")
    columns = list(zip(*table))
    widths = [max(len(cell) for cell in column) for column in columns]
    right = [all(NUMBER.fullmatch(cell) for cell in column[1:]) for column in columns]
    table.insert(1, ["-" * width for width in widths])
    lines = []
    for row in table:
        cells = []
        for cell, width, flush_right in zip(row, widths, right):
            cells.append(cell.rjust(width) if flush_right else cell.ljust(width))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def progress(text):
    """Tell a person watching the terminal what is going on; silent in a log or a pipe."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


def cores():
    """The number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def parallel(function, items):
    """[function(item) for item in items], spread over the cores, for functions that only compute.

    An exception of an item is raised here, with the worker's traceback as its cause.
    """
    items = list(items)
    count = min(cores(), len(items))
    if count <= 1:
        return [function(item) for item in items]
    fork = multiprocessing.get_context("fork")
    taken = fork.Value("i", 0)
    workers = []
    results = {}
    try:
        for _ in range(count):
            # A worker inherits the mask: Ctrl-C is for us, who kill the workers.
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
            pipe, end = fork.Pipe(duplex=False)
            worker = fork.Process(target=_work, args=(function, items, taken, end))
            worker.start()
            workers.append((worker, pipe))
            end.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for worker, pipe in workers:
            done, error, trace = pipe.recv()
            if error:
                raise error from RuntimeError(trace)
            results.update(done)
    finally:
        for worker, _ in workers:
            worker.kill()
            worker.join()
    return [results[number] for number in range(len(items))]


def _work(function, items, taken, end):
    """A worker: take item by item until none is left, then send {number: result}."""
    done = {}
    try:
        while True:
            with taken.get_lock():
                number = taken.value
                taken.value += 1
            if number >= len(items):
                end.send((done, None, ""))
                return
            done[number] = function(items[number])
    except Exception as error:
        taken.value = len(items)
        end.send(({}, error, traceback.format_exc()))
