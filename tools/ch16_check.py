"""Does everything come out as the chapter prints it, and as it is recorded in out/? (`make check`)

    python3 tools/ch16_check.py [--all] [--only NAME ...] [--out DIR]

Runs the chapter's scripts anew into a private folder (or DIR) and compares, number by number,

    with the chapter    model/ch16_figures.json: every number the chapter prints
    with the record     the files in out/, which must also agree letter by letter

A line per table and per file says how many numbers are equal; what differs follows below it. The
exit status is 0 only if everything was compared and nothing differs. Without the simulators the
cycles are the model's, and the last lines say that the RTL was not checked.

That is a minute or two. With --all (`make check-all`) the studies beyond the chapter and the faults
in the RTL are run anew as well and compared with their record, which takes about ten.
"""

import paths

import argparse
import difflib
import json
import re
import shutil
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import cli
import hw
import proc

PRINTED = cli.ROOT / "model" / "ch16_figures.json"
SECONDS = 3600                                  # a script that takes longer hangs
DIFF_LINES = 24
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")

Script = namedtuple("Script", "file outputs")   # in an order in which each finds what it reads
CHAPTER = {
    "run": Script("ch16_run.py", ("ch16_run.json", "ch16_run_out.txt")),
    "example_a": Script("ch16_example_a.py", ("ch16_example_a.json", "ch16_example_a_out.txt")),
    "example_b": Script("ch16_example_b.py", ("ch16_example_b.json", "ch16_example_b_out.txt")),
    "figures": Script("ch16_figures.py", tuple(f"fig16_{i}.svg" for i in range(1, 7))),
    "battery": Script("ch16_battery.py", ("ch16_battery.json", "ch16_battery.txt")),
    "mut_ch16": Script("mut_ch16.py", ("mut_ch16.json", "mut_ch16.txt")),
    "mut_ch16_compiler": Script("mut_ch16_compiler.py", ("mut_ch16_compiler.json",
                                                         "mut_ch16_compiler.txt")),
}
BEYOND = {
    "exact": Script("beyond/ch16_exact.py", ("ch16_exact.json", "ch16_exact.txt")),
    "fast": Script("beyond/ch16_fast.py", ("ch16_fast.json", "ch16_fast.txt", "ch16_fast.svg")),
    "policy": Script("beyond/ch16_policy.py", ("ch16_policy.json", "ch16_policy.txt",
                                               "ch16_policy.svg")),
    "best_k": Script("beyond/ch16_best_k.py", ("ch16_best_k.json", "ch16_best_k.txt",
                                        "ch16_best_k.svg")),
    "tree": Script("beyond/ch16_tree.py", ("ch16_tree.json", "ch16_tree.txt", "ch16_tree.svg")),
    "mut_tree": Script("beyond/mut_tree.py", ("mut_tree.json", "mut_tree.txt")),
    "sample": Script("beyond/ch16_sample.py", ("ch16_sample.json", "ch16_sample.txt",
                                               "ch16_sample.svg")),
    "mut_sample": Script("beyond/mut_sample.py", ("mut_sample.json", "mut_sample.txt")),
    "batch": Script("beyond/ch16_batch.py", ("ch16_batch.json", "ch16_batch.txt",
                                             "ch16_batch.svg")),
    "serve": Script("beyond/ch16_serve.py", ("ch16_serve.json", "ch16_serve.txt",
                                             "ch16_serve.svg")),
    "mut_batch": Script("beyond/mut_batch.py", ("mut_batch.json", "mut_batch.txt")),
    "mut_causal": Script("beyond/mut_causal.py", ("mut_causal.json", "mut_causal.txt")),
    "mut_ga2": Script("mut_ga2.py", ("mut_ga2.json", "mut_ga2.txt")),
    "rtl_full": Script("tests/rtl_full.py", ("rtl_full.txt",)),
}
SCRIPTS = {**CHAPTER, **BEYOND}
DRAWN = ("run", "example_a", "example_b")       # what the figures are drawn from
NEEDS_RTL = ("ch16_run.json", "ch16_run_out.txt", "fig16_3.svg")


# ---- the chapter's tables: where they are printed, and the same shape from our JSON --------------

RUN_COLUMNS = ("tokens_equal", "accepted", "proposed", "blocks", "programs", "rtl_cycles",
               "speedup")


def runs(rows):
    return {row["run"]: {name: row[name] for name in RUN_COLUMNS} for row in rows}


def a_blocks(a):
    return {"float_tokens": a["float_tokens"], "blocks": a["trace"]}


def a_costs(a):
    total, matrix, dma, vector, _ = a["verify"]
    steps = [five[0] for five in a["single"]]
    return {
        "verifier_m4_c4": {
            "instructions": a["verify_instructions"], "words_loaded": a["verify_words_loaded"],
            "cycles": total, "matrix": matrix, "dma": dma, "vector": vector},
        "single_steps_context_5_to_8": {
            "cycles": steps, "sum": sum(steps), "words_loaded": a["single_words_loaded"],
            "words_sum": sum(a["single_words_loaded"])},
        "block_cost_ratio": round(total / sum(steps), 2),
        "weight_words": a["weight_words"],
    }


def a_causality(a):
    return {",".join(str(token) for token in entry["block"]): entry["logits"]
            for entry in a["causality"]}


def b_grid(b):
    grid = {}
    for row in b["grid"]:
        grid.setdefault(f"noise {row['noise']}", []).append([row["percent"], row["speedup"]])
    return {"plain_cycles": b["plain_cycles"], "grid_percent_accepted_and_speedup": grid}


def b_costs(b):
    model = b["model"]
    return {
        "draft_step_cycles": model["draft_step_cycles"],
        "plain_step_cycles_average": model["plain_step_cycles_average"],
        "verifier_m4_cycles": {f"cache {entry['cache']}": entry["cycles"]
                               for entry in model["verifier_cycles"]},
    }


def b_model(b):
    names = ("noise", "alpha", "predicted", "measured")
    return [{name: row[name] for name in names} for row in b["model"]["rows"]]


def b_serving(b):
    rows = {}
    columns = []
    for row in b["serve"]["rows"]:
        rows.setdefault((row["alpha"], row["k"]), []).append(row["speedup"])
        if row["c"] not in columns:
            columns.append(row["c"])
    return {"columns_c": columns, "rows": [[*key, *cells] for key, cells in rows.items()]}


def caught(rows, prefix):
    counted = [row for row in rows if not row["equivalent"] and not row.get("further")]
    return {f"{prefix}_caught": sum(row["verdict"] in ("caught", "crash") for row in counted),
            f"{prefix}_total": len(counted)}


def model_mutants(rows):
    return caught(rows, "model")


def compiler_mutants(rows):
    equivalents = [row for row in rows if row["equivalent"] and row["verdict"] == "survived"]
    return {**caught(rows, "compiler"), "compiler_equivalent": len(equivalents)}


def part(section, *names):
    """A function that takes these entries out of a section of the printed figures."""
    def entries(printed):
        return {name: printed[section][name] for name in names}
    return entries


# count: how many numbers the chapter prints there ("yes" and "-" are counted as well).
Table = namedtuple("Table", "name script count printed measured")
TABLES = (
    Table("the seven runs", "run", 49, lambda printed: runs(printed["run"]), runs),
    Table("example A: three blocks", "example_a", 50,
          part("example_a", "float_tokens", "blocks"), a_blocks),
    Table("example A: a block and four steps", "example_a", 25,
          part("example_a", "verifier_m4_c4", "single_steps_context_5_to_8", "block_cost_ratio",
               "weight_words"), a_costs),
    Table("example A: causality in integers", "example_a", 80,
          lambda printed: printed["example_a"]["causality_first_five_logits"], a_causality),
    Table("example B: acceptance and speedup", "example_b", 51,
          part("example_b", "plain_cycles", "grid_percent_accepted_and_speedup"), b_grid),
    Table("example B: unit costs", "example_b", 5,
          part("example_b", "draft_step_cycles", "plain_step_cycles_average",
               "verifier_m4_cycles"), b_costs),
    Table("example B: geometric model", "example_b", 12,
          lambda printed: printed["example_b"]["geometric_model_k3"], b_model),
    Table("example B: serving, derived", "example_b", 48,
          lambda printed: printed["example_b"]["serving"], b_serving),
    Table("mutants of the model", "mut_ch16", 2,
          part("mutation", "model_caught", "model_total"), model_mutants),
    Table("mutants of the compiler", "mut_ch16_compiler", 3,
          part("mutation", "compiler_caught", "compiler_total", "compiler_equivalent"),
          compiler_mutants),
)


# ---- run the scripts -----------------------------------------------------------------------------

def regenerate(names, folder, recorded, rtl=True):
    """Run the scripts into the folder; yields a sentence for each that fails.

    What the figures need from a script that is not run comes from the record. With rtl=False the
    main run is made without the Verilog.
    """
    for name in names:
        for output in SCRIPTS[name].outputs:
            (folder / output).unlink(missing_ok=True)
    for name in DRAWN if "figures" in names else ():
        source = recorded / SCRIPTS[name].outputs[0]
        if name not in names and source.exists():
            shutil.copy(source, folder)
    for name in names:
        file = SCRIPTS[name].file
        options = ["--out", folder]
        if name == "figures":
            options += ["--data", folder]
        if name == "run" and not rtl:
            options += ["--sim", "none"]
        cli.progress(f"{file} ...")
        command = [sys.executable, cli.ROOT / "tools" / file, *options]
        status, output = proc.execute(command, cli.ROOT, SECONDS)
        if status and (name != "run" or rtl):
            yield f"{file} ended with exit status {status}:\n{indented(output.splitlines()[-12:])}"


# ---- compare -------------------------------------------------------------------------------------

def compare(names, fresh, recorded, printed, rtl=True):
    """Yield (what, equal, total, differences) per table and file of the scripts named.

    fresh, recorded: folders; printed: the chapter's figures. Nothing differs where equal is total,
    total is not 0 and there are no differences.
    """
    for table in TABLES:
        if table.script in names:
            yield (f"chapter, {table.name}", *compare_table(table, fresh, printed, rtl))
    for name in names:
        for output in SCRIPTS[name].outputs:
            if rtl or output not in NEEDS_RTL:
                yield (f"record, {output}", *compare_file(output, fresh, recorded))


def compare_table(table, fresh, printed, rtl):
    """(equal, total, differences) of one of the chapter's tables."""
    path = fresh / SCRIPTS[table.script].outputs[0]
    try:
        expected = dict(leaves(table.printed(printed)))
    except (LookupError, TypeError, AttributeError) as error:
        return 0, table.count, [f"the chapter's figures lack it: {error!r}"]
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if table.script == "run" and not rtl:
            data = [{**row, "rtl_cycles": row["model_cycles"]} for row in data]
        measured = dict(leaves(table.measured(data)))
    except OSError as error:
        return 0, table.count, [f"missing: {path} ({error.strerror})"]
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        return 0, table.count, [f"{path} does not hold it: {error!r}"]
    differences = []
    if len(expected) != table.count:
        differences.append(f"the chapter's figures hold {len(expected)} numbers here, not "
                           f"{table.count}")
    for place in list(expected) + [place for place in measured if place not in expected]:
        old, new = (found.get(place, "nothing") for found in (expected, measured))
        if not same(old, new):
            differences.append(f"{place}: the chapter prints {shown(old)}, this is {shown(new)}")
    equal = sum(place in measured and same(value, measured[place])
                for place, value in expected.items())
    return equal, table.count, differences


def leaves(value, place=""):
    """(place, value) of everything in nested dicts and lists that is neither."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        yield place, value
        return
    for key, inner in items:
        yield from leaves(inner, f"{place}, {key}" if place else str(key))


def same(old, new):
    """Equal, and not by true being 1."""
    return old == new and isinstance(old, bool) == isinstance(new, bool)


def shown(value):
    return "-" if value is None else str(value)


def compare_file(name, fresh, recorded):
    """(equal, total, differences) of a file as it is now and as it is recorded."""
    texts = []
    for folder in (recorded, fresh):
        try:
            texts.append((folder / name).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            return 0, 0, [f"missing: {folder / name} ({error})"]
    old, new = (NUMBER.findall(text) for text in texts)
    equal = sum(one == two for one, two in zip(old, new))
    total = max(len(old), len(new))
    if not total:
        return 0, 0, [f"there is not one number in {recorded / name}"]
    return equal, total, diff(name, *texts)


def diff(name, old, new):
    """The lines that differ, at most DIFF_LINES of them."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), f"{name} as recorded",
                                      f"{name} now", lineterm="", n=0))
    if len(lines) > DIFF_LINES:
        lines = lines[:DIFF_LINES] + [f"... and {len(lines) - DIFF_LINES} lines more"]
    if not lines and old != new:
        lines = ["the same lines, but other ends of lines"]
    return lines


# ---- the report ----------------------------------------------------------------------------------

def report(results, failures, not_checked):
    """(lines, whether all is well) from what `compare` and `regenerate` found."""
    lines = []
    well = bool(results) and not failures and not not_checked
    for what, equal, total, differences in results:
        lines.append(f"{what:<44} {equal:4} of {total:4} numbers equal")
        if differences:
            lines.append(indented(differences))
        well = well and 0 < total == equal and not differences
    lines += failures
    for kind, noun in (("chapter", "the chapter's numbers"), ("record", "the recorded numbers")):
        counts = [(equal, total) for what, equal, total, _ in results if what.startswith(kind)]
        lines.append(f"{sum(equal for equal, _ in counts):,} of "
                     f"{sum(total for _, total in counts):,} of {noun} equal")
    if not_checked:
        lines.append(f"{not_checked}\nThe cycles above are the model's; the files that tell of the "
                     "RTL were not compared.")
    lines.append("everything is as printed and as recorded" if well else
                 "NOT as printed and recorded")
    return lines, well


def indented(lines):
    return "\n".join(f"    {line}" for line in lines)


def main(argv=None):
    args = arguments(argv)
    names = [name for name in SCRIPTS if name in (args.only or (SCRIPTS if args.all else CHAPTER))]
    not_checked = hw.not_checked() if set(names) & {"run", *BEYOND} else ""
    if not_checked:
        names = [name for name in names if name not in BEYOND]  # what they record is of the RTL
    with tempfile.TemporaryDirectory(prefix="ga2-") as private:
        folder = args.out or Path(private)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            printed = json.loads(PRINTED.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise cli.UserError(f"cannot begin: {error}") from error
        failures = list(regenerate(names, folder, cli.OUT, rtl=not not_checked))
        results = list(compare(names, folder, cli.OUT, printed, rtl=not not_checked))
    lines, well = report(results, failures, not_checked)
    print("\n".join(lines))
    return 0 if well else 1


def arguments(argv):
    parser = argparse.ArgumentParser(
        description="Compare the chapter's figures, and the record in out/, with fresh runs.")
    parser.add_argument("--only", nargs="+", choices=list(SCRIPTS), default=[], metavar="NAME",
                        help="only these: " + ", ".join(SCRIPTS))
    parser.add_argument("--all", action="store_true",
                        help="also " + ", ".join(BEYOND))
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="keep the new files in this folder (not out/)")
    args = parser.parse_args(argv)
    if args.out and args.out.resolve() == cli.OUT:
        parser.error("--out: out/ holds the record; give another folder")
    return args


if __name__ == "__main__":
    sys.exit(cli.run(main))
