"""Replay the whole program suite on the RTL: three latencies, both simulators.

    python3 tools/tests/rtl_full.py                    # make test-rtl-full
    python3 tools/tests/rtl_full.py --random 1000 --seed 7

Every program's external memory and its five counters must equal the reference simulator's. Prints
a table; that of the usual programs is also written to out/rtl_full.txt.
"""

import argparse
import sys
from collections import namedtuple
from pathlib import Path

import paths
import cli
import hw
import proc

import ga2_isa
import ga2_progs
import ga2_suite

LATENCIES = (1, 8, 20)
WORDS = 1024                    # of external memory: reading a large image takes Icarus longest
FULL_WORDS = 8192
HEADER = ("suite", "latency", "simulator", "programs", "cycles", "mismatches")

# programs: their names; records: latency -> their records
Suite = namedtuple("Suite", "name words programs records plusargs")
Job = namedtuple("Job", "suite lat sim")
# cycles: None where the simulation did not pass; output: what it printed then
Result = namedtuple("Result", "cycles mismatches output")


def main(argv=None):
    arguments = parse(argv)
    reason = hw.not_checked()
    if reason:
        raise cli.UserError(reason)
    suites = all_suites(arguments.random, arguments.seed)
    results = measure(suites)
    table = cli.format_table(HEADER, [format_row(job, result) for job, result in results])
    print(table)
    failures = format_failures(results)
    if failures:
        print(failures)
        return 1
    if (arguments.random, arguments.seed) == (parse([]).random, parse([]).seed):
        cli.write_text(arguments.out / "rtl_full.txt", table + "\n")
    return 0


def parse(argv):
    parser = argparse.ArgumentParser(description="Replay the program suite on the RTL.")
    parser.add_argument("--random", type=int, default=200, metavar="N",
                        help="number of random programs (200)")
    parser.add_argument("--seed", type=int, default=1, help="of the random programs (1)")
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for rtl_full.txt (out/)")
    arguments = parser.parse_args(argv)
    if arguments.random < 1:
        parser.error(f"--random {arguments.random}: give 1 program or more")
    return arguments


def all_suites(count, seed):
    """The directed programs, random ones, and those of the memory's end and of reset."""
    most = ga2_suite.MOST_WORDS
    try:
        directed = ga2_suite.directed(WORDS)
        return [suite("directed", WORDS, directed),
                suite("random", WORDS, ga2_suite.random_programs(count, seed, WORDS)),
                suite("directed, random power-on", WORDS, directed, power_on(1)),
                suite(f"ends of {FULL_WORDS} words", FULL_WORDS, ga2_suite.ends(FULL_WORDS)),
                Suite(f"end of {most} words", most, ["far end"],
                      lambda lat: [ga2_suite.far_end(lat)], ())]
    except ga2_isa.IsaError as error:
        raise cli.UserError(str(error)) from error


def suite(name, words, programs, plusargs=()):
    """The Suite of `programs` for an external memory of `words` words."""
    def records(lat):
        return [ga2_progs.record(program.code, program.ext, lat, words) for program in programs]

    return Suite(name, words, [program.name for program in programs], records, plusargs)


def power_on(seed):
    """The plusargs that start a simulation with random registers.

    Verilator draws them once, so that only the first program of an image meets them; in Icarus the
    testbench does, before every program.
    """
    return (f"poweron={seed}", "verilator+rand+reset+2", f"verilator+seed+{seed}")


def measure(suites, latencies=LATENCIES, sims=hw.SIMULATORS):
    """[(Job, Result)] of every suite at every latency in every simulator, in this order."""
    jobs = [Job(suite, lat, sim) for suite in suites for lat in latencies for sim in sims]
    results = {}
    numbered = list(enumerate(jobs))
    for (number, job), result in proc.side_by_side(lambda item: replay(item[1]), numbered,
                                                   cli.cores()):
        cli.progress(f"{job.suite.name}, latency {job.lat}, {job.sim}: {result.mismatches}")
        results[number] = result
    return [(job, results[number]) for number, job in numbered]


def replay(job):
    """The Result of one suite at one latency in one simulator."""
    records = job.suite.records(job.lat)
    ended = hw.replay(records, [job.sim], lat=job.lat, ext=job.suite.words,
                      plusargs=job.suite.plusargs)[job.sim]
    if ended.status == 0 and ended.programs != len(records):
        return Result(None, "-", f"{ended.programs} programs were run, not {len(records)}")
    mismatches = sum(line.startswith("MISMATCH") for line in ended.output.splitlines())
    if ended.status != 0:
        return Result(None, mismatches or "-", ended.output)
    return Result(ended.cycles, mismatches, "")


# ---- format --------------------------------------------------------------------------------------

def format_row(job, result):
    cycles = "-" if result.cycles is None else f"{result.cycles:,}"
    return (job.suite.name, job.lat, job.sim, len(job.suite.programs), cycles, result.mismatches)


def format_failures(results):
    """What the simulations that did not pass printed; the programs by name."""
    lines = []
    for job, result in results:
        if result.output:
            title = f"{job.suite.name}, latency {job.lat}, {job.sim}:"
            lines += ["", title, result.output.rstrip()]
            lines += [f"program {number} is {name}"
                      for number, name in enumerate(job.suite.programs)
                      if f"program {number}:" in result.output]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(cli.run(main))
