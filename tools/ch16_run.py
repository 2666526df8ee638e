"""The chapter's main run: seven decodings of 32 tokens, every program replayed on the Verilog.

    python3 tools/ch16_run.py [--sim icarus|verilator|both|none] [--out DIR] [--vcd]

1. The software checks of spec_tests.
2. The structured model: plain, then k = 3 with drafts of noise 0, 3 and 4.
3. Random model 1: plain, then k = 1 and k = 3.

Writes ch16_run.json (the table's rows) and ch16_run_out.txt (what it prints) into the folder out/.
With --vcd also ch16_run.vcd: one verifier block as waves, for GTKWave or Surfer.
"""

import paths

import argparse
import sys
import tempfile
from pathlib import Path

import cli
import ga2_progs
import hw
import spec_lm
import spec_tests
import tiny_lm
from runs import (DRAFT_SEED, HEADER, IMAGE_WORDS, RUNS, START, TOKENS, cells, record, rtl_line,
                  rule_tokens)

WAVES = ("structured: k=3 noise 0", {"kind": "verify", "c": 4, "m": 4})


# ---- measure -------------------------------------------------------------------------------------

def measure(run):
    """(tokens, stats or None, log) of one run on the simulated chip."""
    mdl = tiny_lm.make_model(run.model)
    if run.k is None:
        tokens, log = tiny_lm.Chip(mdl, TOKENS).generate(START, TOKENS)
        return tokens, None, log
    Wd = spec_lm.make_draft(mdl, run.noise, DRAFT_SEED)
    return spec_lm.SpecChip(mdl, Wd, TOKENS, run.k).generate(START, TOKENS)


def measure_and_record(run):
    """measure(run), and the log's programs as records of an image."""
    tokens, stats, log = measure(run)
    return tokens, stats, log, [record(entry) for entry in log]


# ---- rows ----------------------------------------------------------------------------------------

def make_rows(measured, rtl):
    """The table's rows, one per run; rtl: {simulator: counters of each program of all runs}."""
    rows = []
    first = 0
    plain = {}                                  # model: (tokens, cycles) of its plain run
    for run, (tokens, stats, log, _) in zip(RUNS, measured):
        model_cycles = spec_lm.cycles_of(log)
        counted = {sum(total for total, *_ in counters[first:first + len(log)])
                   for counters in rtl.values()}
        if counted - {model_cycles}:
            raise AssertionError(f"{run.name}: RTL counts {counted}, the model {model_cycles}")
        first += len(log)
        if run.k is None:
            plain[run.model] = tokens, model_cycles
        own, plain_cycles = plain[run.model]
        target = rule_tokens() if run.model == "structured" else own
        rows.append({
            "run": run.name,
            "tokens_equal": tokens == target,
            "accepted": stats and stats["accepted"],
            "proposed": stats and stats["proposed"],
            "blocks": stats and stats["blocks"],
            "programs": len(log),
            "model_cycles": model_cycles,
            "rtl_cycles": model_cycles if rtl else None,
            "speedup": round(plain_cycles / model_cycles, 2),
        })
    return rows


# ---- format --------------------------------------------------------------------------------------

def table(rows):
    """The rows as text."""
    return cli.format_table(HEADER, [cells(row) for row in rows])


def check_lines(problems):
    """A line per software check: its name, and what it found."""
    return [f"  {name:26} {'ok' if not found else '; '.join(found)}"
            for name, found in problems.items()]


# ---- the script ----------------------------------------------------------------------------------

def main(argv=None):
    args = arguments(argv)
    sims, complete, not_checked = hw.chosen(args.sim)
    if args.vcd and hw.missing(["icarus"]):
        raise cli.UserError(f"--vcd takes Icarus Verilog; {hw.not_checked(['icarus'])}")

    cli.progress("software checks and seven runs ...")
    *measured, problems = cli.parallel(job, list(RUNS) + [None])
    records = [record for run in measured for record in run[3]]
    cli.progress(f"replaying {len(records)} programs on the RTL ...")
    rtl = hw.counters(records, sims, ext=IMAGE_WORDS)
    rows = make_rows(measured, rtl)

    text = "\n".join([
        "1. Software checks", *check_lines(problems), "",
        f"2. and 3. {TOKENS} tokens from token {START}", "", table(rows), "",
        rtl_line(sims, len(records), not_checked)]) + "\n"
    cli.write_json(args.out / "ch16_run.json", rows)
    cli.write_text(args.out / "ch16_run_out.txt", text)
    if args.vcd:
        text += f"waves: {write_waves(args.out, measured)}\n"
    print(text, end="")
    well = all(row["tokens_equal"] for row in rows) and not any(problems.values())
    return 0 if well and complete else 1


def job(run):
    """A run of the table, or with None the software checks: {name: problems}."""
    if run:
        return measure_and_record(run)
    return {check.__name__: list(check()) for check in spec_tests.CHECKS}


def write_waves(out, measured):
    """Replay one verifier block in Icarus with waves; returns the VCD's path."""
    name, wanted = WAVES
    log = measured[[run.name for run in RUNS].index(name)][2]
    entry = next(entry for entry in log if wanted.items() <= entry.items())
    path = (out / "ch16_run.vcd").resolve()
    with tempfile.TemporaryDirectory(prefix="ga2-") as folder:
        image = Path(folder) / "programs.hex"
        image.write_text(ga2_progs.image([ga2_progs.record(entry["code"], entry["ext"])]))
        waves = Path(folder) / "waves.vcd"
        status, output = hw.sim_icarus(hw.RTL + hw.TB, "ga2_tb", programs=image,
                                       plusargs=[f"vcd={waves}"])
        if status:
            raise cli.UserError(f"no waves: {output}")
        cli.write_text(path, waves.read_text())
    return path


def arguments(argv):
    parser = argparse.ArgumentParser(
        description="Run the chapter: checks, seven decodings, the replay on the RTL.")
    hw.add_option(parser)
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the outputs (default out/)")
    parser.add_argument("--vcd", action="store_true",
                        help="also write waves of one verifier block, ch16_run.vcd (uses Icarus)")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(cli.run(main))
