"""Runs the chip's Verilog in Icarus Verilog and in Verilator.

    status, text = hw.sim_icarus(hw.RTL + hw.TB, "ga2_tb", defines=["LAT=20"])
    results = hw.replay(records)  # both simulators side by side: results["icarus"].cycles, ...

The exit status is 0 only for a simulation that ended well and printed exactly one verdict, a line
starting PASS. Everything else, from a missing simulator to a time-out, is a status other than 0
and a text that says what happened.

A simulator is built once per set of sources, defines, top, options and version, and kept in
out/build/ under the hash of all of these and, so that a damaged one is known, of its own bytes.
"""

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections import namedtuple
from pathlib import Path

import paths
import cli
import proc

ROOT = cli.ROOT

RTL = ["rtl/sram.v", "rtl/dma.v", "rtl/systolic.v", "rtl/requant.v", "rtl/exp_lut.v",
       "rtl/divu.v", "rtl/rowmem.v", "rtl/ga2_vec.v", "rtl/ga2_sm.v", "rtl/ga2_mm.v", "rtl/ga2.v"]
TB = ["tb/extmem_rw.v", "tb/ga2_tb.v"]

SIMULATORS = ("icarus", "verilator")
INSTALL = "sudo apt-get install iverilog verilator g++ make"
NEEDS = {"icarus": ["iverilog"], "verilator": ["verilator", "g++", "make"]}
VERSION = {"icarus": ["iverilog", "-V"], "verilator": ["verilator", "--version"]}
OLDEST = {"icarus": "11.0", "verilator": "5.006"}

NOT_INSTALLED = 127  # exit statuses as in the shell
CANNOT_RUN = 126
BUILD_SECONDS = 600  # limits that only something broken reaches
RUN_SECONDS = 1800

Replay = namedtuple("Replay", "status output programs cycles counters")


# ---- which simulators are there ------------------------------------------------------------------

def missing(sims=SIMULATORS):
    """What must be installed before `sims` can run, program by program; empty when they can."""
    problems = []
    for sim in sims:
        absent = [name for name in NEEDS[sim] if not shutil.which(name)]
        problems += absent
        if not absent:
            found = re.search(r"\d+\.\d+", version(sim))
            if not found or _number(found.group()) < _number(OLDEST[sim]):
                problems.append(f"{NEEDS[sim][0]} {OLDEST[sim]} or newer (there is {version(sim)})")
    return problems


def not_checked(sims=SIMULATORS):
    """Why the RTL cannot be checked and what to install, in one line; empty when it can."""
    problems = missing(sims)
    return f"RTL not checked: {_advice(problems)}" if problems else ""


def add_option(parser):
    """Give a script's argparse parser the option --sim."""
    parser.add_argument("--sim", choices=(*SIMULATORS, "both", "none"), default="both",
                        help="simulators to replay on (default both; none: the model alone)")


def chosen(option):
    """(simulators to use, whether all that were asked for, why not) of the value of --sim."""
    if option == "none":
        return (), True, "asked for with --sim none"
    wanted = SIMULATORS if option == "both" else (option,)
    sims = tuple(sim for sim in wanted if not missing([sim]))
    problems = missing(wanted)
    return sims, sims == wanted, _advice(problems) if problems else ""


def _advice(problems):
    return f"missing {', '.join(problems)}; install with `{INSTALL}`"


@functools.lru_cache(maxsize=None)
def version(sim):
    """The line in which an installed simulator names itself and its version.

    Raises UserError where it could not even do that: without a folder for its temporary files.
    """
    wanted = os.environ.get("TMPDIR")
    if wanted and os.path.abspath(wanted) != tempfile.gettempdir():  # which tries to write there
        raise cli.UserError(f"TMPDIR={wanted}: no file can be written there; name a folder that "
                            "takes files, or unset TMPDIR")
    _, text = proc.execute(VERSION[sim], cwd=ROOT, timeout=60)
    return text.partition("\n")[0].strip()


def _number(text):
    """"5.006" -> (5, 6)"""
    return tuple(int(part) for part in text.split("."))


# ---- one simulation ------------------------------------------------------------------------------

def simulate(sim, files, top, root=ROOT, defines=(), programs=None, plusargs=(),
             timeout=RUN_SECONDS):
    """Simulate `top` in one of SIMULATORS: (exit status, output text).

    files: every source, relative to `root`, which is also the working directory of the simulation.
    defines: "NAME" or "NAME=value"; EXTW comes from the environment variable GA2_EXT if not given.
    programs: the program image, relative to `root`, instead of out/ga2_programs.hex.
    plusargs: further ones, without the plus ("vcd"). timeout: seconds the simulation may take.
    """
    root = Path(root).resolve()
    problems = missing([sim])
    if problems:
        return NOT_INSTALLED, f"{sim}: {_advice(problems)}\n"
    try:
        # The build works on copies, at the same place in another folder.
        sources = {name: (root / name).read_bytes() for name in files}
        simulator = _simulator(sim, sources, top, root, _with_ext(defines))
        command = ["vvp", "-n", str(simulator)] if sim == "icarus" else [str(simulator)]
        if programs is not None:
            command.append(f"+programs={root / programs}")
        command += [f"+{text}" for text in plusargs]
        status, text = proc.execute(command, cwd=root, timeout=timeout)
    except _BuildFailed as failure:
        return failure.args
    except OSError as error:
        return CANNOT_RUN, f"{sim}: {error.strerror}: {error.filename}\n"
    return _judge(sim, status, text, timeout)


def sim_icarus(files, top, root=ROOT, defines=(), **options):
    """Simulate `top` in Icarus Verilog; see `simulate`."""
    return simulate("icarus", files, top, root, defines, **options)


def sim_verilator(files, top, root=ROOT, defines=(), **options):
    """Simulate `top` in Verilator; see `simulate`."""
    return simulate("verilator", files, top, root, defines, **options)


def _with_ext(defines):
    """The defines, with the size of the external memory that the Python model uses as well."""
    words = os.environ.get("GA2_EXT")
    if words is None or any(text.startswith("EXTW=") for text in defines):
        return list(defines)
    return [*defines, f"EXTW={words}"]


def _judge(sim, status, text, timeout):
    """The simulation's (status, text), as a failure with a message unless it is a clean PASS."""
    verdicts = re.findall(r"^(PASS|FAIL)\b", text, re.MULTILINE)
    if status == proc.TIMED_OUT:
        problem = f"stopped after {timeout} s without an end"
    elif len(verdicts) != 1:
        problem = f"exit status {status} and {len(verdicts)} lines starting PASS or FAIL, not one"
    elif verdicts == ["PASS"] and status != 0:
        problem = f"PASS, but exit status {status}"
    elif verdicts == ["FAIL"]:
        return status or 1, text
    else:
        return 0, text
    return status or 1, _lines(text) + f"{sim}: {problem}\n"


def _lines(text):
    """The text, its last line ended."""
    return text if text.endswith("\n") or not text else text + "\n"


# ---- building simulators, and keeping them -------------------------------------------------------

class _BuildFailed(Exception):
    """Exit status and text of a build that gave no simulator."""


def _simulator(sim, sources, top, root, defines):
    """The path of the simulator, built now unless a whole one is kept from before."""
    command = _build_command(sim, list(sources), top, defines)
    key = hashlib.sha256(json.dumps([version(sim), platform.platform(), command]).encode())
    for content in sources.values():
        key.update(hashlib.sha256(content).digest())
    shelf = root / "out" / "build"
    shelf.mkdir(parents=True, exist_ok=True)
    for path in shelf.glob(f"{sim}-{key.hexdigest()[:32]}-*"):
        if path.name.endswith(_digest(path)):
            return path
        path.unlink(missing_ok=True)
    # Verilator's makefiles cannot stand a space in the path, hence a folder elsewhere.
    elsewhere = "/tmp" if " " in tempfile.gettempdir() else None
    with tempfile.TemporaryDirectory(prefix="ga2-", dir=elsewhere) as work:
        built = _build(sim, sources, command, Path(work))
        path = shelf / f"{sim}-{key.hexdigest()[:32]}-{_digest(built)}"
        return _shelve(built, path)


def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def _build_command(sim, names, top, defines):
    defines = [f"-D{text}" for text in defines]
    if sim == "icarus":
        return ["iverilog", "-g2012", "-s", top, "-o", "sim", *defines, *names]
    # Measured: with -O2, g++ takes longer by more than a long simulation becomes faster.
    optimise = "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1"
    return ["verilator", "--binary", "--timing", "-O3", "-Wno-fatal", "-j", str(cli.cores()),
            "-MAKEFLAGS", optimise, "--top-module", top, "--Mdir", ".", "-o", "sim",
            *defines, *names]


def _build(sim, sources, command, work):
    """Build from copies of the sources in the folder `work`; return the simulator's path."""
    for name, content in sources.items():
        copy = work / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(content)
    # The options and the job server of a make that runs us are not meant for Verilator's make.
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    status, text = proc.execute(command, work, BUILD_SECONDS, env)
    if status == proc.TIMED_OUT:
        problem = f"the build was stopped after {BUILD_SECONDS} s"
    elif status != 0:
        problem = f"the sources do not compile (exit status {status})"
    else:
        return work / "sim"
    raise _BuildFailed(status, _lines(text) + f"{sim}: {problem}\n")


def _shelve(built, path):
    """Put a simulator in its place at once, so that another run sees all of it or nothing."""
    beside = path.with_name(f".{path.name}.{built.parent.name}.tmp")
    try:
        # Copied by a child: a program that a thread of ours has open for writing cannot be run.
        status, text = proc.execute(["cp", built, beside], path.parent, BUILD_SECONDS)
        if status != 0:
            raise OSError(0, text.strip(), str(path))
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path


# ---- programs on the chip ------------------------------------------------------------------------

def replay(records, sims=SIMULATORS, lat=None, ext=None, root=ROOT, plusargs=()):
    """Run programs, records as of ga2_progs.record, on the RTL: {simulator: Replay}.

    lat, ext: latency and words of the external memory, where they are not the usual ones.
    plusargs: passed to every simulation, without the plus.

    A Replay has status (0: everything as the records expect) and output, and of a simulation that
    passed: programs (how many), cycles (their sum) and counters, per program
    (total, matrix, dma, vector, instructions) as the chip counted them. Else these are None.
    """
    defines = ["DUMP"] + [f"{name}={value}" for name, value in (("LAT", lat), ("EXTW", ext))
                          if value is not None]

    def one(job):
        sim, image = job
        result = simulate(sim, RTL + TB, "ga2_tb", root, defines, image, plusargs)
        return _read_replay(sim, *result)

    with tempfile.TemporaryDirectory(prefix="ga2-") as folder:
        images = _write_images(records, Path(folder))
        jobs = [(sim, image) for sim in sims for image in images.values()]
        ended = dict(proc.side_by_side(one, jobs, cli.cores()))
    return {sim: _join([(first, ended[sim, image]) for first, image in images.items()])
            for sim in sims}


def counters(records, sims, ext=None):
    """{simulator: five counters of each program} of records that the RTL must agree with.

    Raises UserError, with the simulator's words, where it does not.
    """
    counted = {}
    for sim, result in (replay(records, sims, ext=ext) if sims else {}).items():
        if result.status:
            raise cli.UserError(f"the RTL differs from the model in {sim}:\n{result.output}")
        counted[sim] = result.counters
    return counted


def _write_images(records, folder):
    """{number of its first program: image}: as many as there are cores, for a simulator on each."""
    # Imported late: the test runner and the set-up use this file even when the model is broken.
    import ga2_progs
    size = max(1, -(-len(records) // cli.cores()))
    images = {}
    for first in range(0, max(1, len(records)), size):
        images[first] = folder / f"programs_from_{first}.hex"
        images[first].write_text(ga2_progs.image(records[first:first + size]), encoding="ascii")
    return images


def _join(parts):
    """The Replay of all parts, (number of its first program, Replay) in order."""
    replays = [replay for _, replay in parts]
    output = "".join(_renumber(_lines(replay.output), first) for first, replay in parts)
    failed = [replay.status for replay in replays if replay.status]
    if failed:
        return Replay(failed[0], output, None, None, None)
    return Replay(0, output, sum(replay.programs for replay in replays),
                  sum(replay.cycles for replay in replays),
                  [five for replay in replays for five in replay.counters])


def _renumber(text, first):
    """The testbench's text, its programs numbered from `first`."""
    return re.sub(r"\bprogram (\d+)", lambda found: f"program {int(found[1]) + first}", text)


def _read_replay(sim, status, text):
    """The Replay told by the testbench's output; numbers that do not fit together are a failure."""
    if status != 0:
        return Replay(status, text, None, None, None)
    counters = [tuple(int(word) for word in line.split()[2:])
                for line in text.splitlines() if line.startswith("COUNTERS ")]
    summary = re.search(r"^PASS\D*(\d+)\D+(\d+)", text, re.MULTILINE)
    programs, cycles = (int(digits) for digits in summary.groups()) if summary else (None, None)
    if len(counters) != programs or sum(five[0] for five in counters) != cycles:
        problem = f"{sim}: the PASS line and the COUNTERS lines do not tell the same\n"
        return Replay(1, _lines(text) + problem, None, None, None)
    return Replay(0, text, programs, cycles, counters)
