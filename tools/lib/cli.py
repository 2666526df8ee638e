"""What the scripts in tools/ share: the paths, exit statuses, files, tables and work on all cores.

A script starts with `import paths`, for the import path, and ends with `sys.exit(cli.run(main))`.
"""

import concurrent.futures
import json
import os
import re
import secrets
import signal
import sys
from pathlib import Path

from paths import ROOT

OUT = ROOT / "out"

MODEL_ERRORS = ("CompileError", "IsaError")  # what the model refuses, in a sentence of its own
NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?( ?[%x])?|-?")


class UserError(Exception):
    """Something the person at the keyboard can put right: told in one sentence, no traceback."""


def run(main):
    """Call main() and return the exit status of the script.

    A UserError, an error of the system and what the model refuses: one line on stderr, status 2. A
    reader that closes our stdout early (`| head -1`) is no error worth a word: 141, as the shell
    reports it. Ctrl-C is 130.
    """
    # A polite `kill` unwinds like Ctrl-C, so that the simulators we started are ended too.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Python flushes stdout once more on its way out; give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if not (isinstance(error, (UserError, OSError)) or type(error).__name__ in MODEL_ERRORS):
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2


def tell(kind, error, trace):
    """The last word on an exception that nothing caught, also while a script is still importing."""
    if kind.__name__ in MODEL_ERRORS:
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
    """[function(item) for item in items], spread over the cores.

    `function` lives at the top level of a module: the workers import it by name. The first
    exception of an item, in the order of the items, is raised here.
    """
    items = list(items)
    workers = min(cores(), len(items))
    if workers <= 1:
        return [function(item) for item in items]
    functions = [function] * len(items)
    with concurrent.futures.ProcessPoolExecutor(workers, initializer=_idle) as pool:
        return list(pool.map(_work, functions, items))


def _idle():
    """A worker without work dies of Ctrl-C or `kill` without a word."""
    _on_interrupt(signal.SIG_DFL)


def _work(function, item):
    """One item in a worker: an interrupt unwinds it, so that it ends what it started."""
    _on_interrupt(signal.default_int_handler)
    try:
        return function(item)
    except KeyboardInterrupt:
        os._exit(130)
    finally:
        _idle()


def _on_interrupt(handler):
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
