"""The compiler's battery as the chapter reports it: graphs, problems, and the worst error.

    python3 tools/ch16_battery.py [--out DIR]

Runs model/capra_tests.py: random graphs, random graphs around slices, graphs that must be refused,
and a sum that nearly cancels. Writes ch16_battery.json (all numbers) and ch16_battery.txt (what it
prints) into out/. The exit status is 0 only if no graph has a problem.
"""

import paths

import argparse
import sys
from pathlib import Path

import capra_tests
import cli
from capra_random import plain_graph, slice_graph

GRAPHS = 100                                    # of each kind, seeds from 0
HEADER = ("battery", "graphs", "problems", "worst error", "bound")


def measure():
    """[(name, graphs or None, problems, worst relative error or None, its bound or None)]."""
    kinds = [("random graphs", plain_graph, capra_tests.BOUND, True),
             ("graphs around slices", slice_graph, capra_tests.SLICE_BOUND, False)]
    rows = []
    for name, make, bound, stagewise in kinds:
        problems, worst = capra_tests.check_cases(make, range(GRAPHS), bound, stagewise)
        rows.append((name, GRAPHS, problems, round(worst, 3), bound))
    for name, check in (("graphs to refuse", capra_tests.check_errors),
                        ("slices to refuse", capra_tests.check_slice_errors),
                        ("a sum that cancels", capra_tests.check_cancellation)):
        rows.append((name, None, check(), None, None))
    return rows


def report(rows):
    """The table, and every problem."""
    def cell(value, form):
        return "-" if value is None else format(value, form)

    lines = [(name, cell(graphs, ""), len(problems), cell(worst, ".3f"), cell(bound, ".2f"))
             for name, graphs, problems, worst, bound in rows]
    found = [f"{name}: {problem}" for name, _, problems, _, _ in rows for problem in problems]
    return "\n".join([cli.format_table(HEADER, lines), *found]) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(description="Run the compiler's battery.")
    parser.add_argument("--out", type=Path, default=cli.OUT, metavar="DIR",
                        help="folder for the outputs (default out/)")
    args = parser.parse_args(argv)
    rows = measure()
    text = report(rows)
    cli.write_json(args.out / "ch16_battery.json", [
        {"battery": name, "graphs": graphs, "problems": problems, "worst": worst, "bound": bound}
        for name, graphs, problems, worst, bound in rows])
    cli.write_text(args.out / "ch16_battery.txt", text)
    print(text, end="")
    return 1 if any(problems for _, _, problems, _, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(cli.run(main))
