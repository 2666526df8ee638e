"""Tests of the figures: well-formed, legible, accessible, and drawn from the JSON files."""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

import paths
import ch16_figures
import cli
import svg

PRINTED = json.loads((cli.ROOT / "model" / "ch16_figures.json").read_text(encoding="utf-8"))
DATA = {name: json.loads((cli.OUT / f"{name}.json").read_text(encoding="utf-8"))
        for name in ch16_figures.SCRIPT}
SVG = "{http://www.w3.org/2000/svg}"
SHAPES = {"rect", "line", "polyline", "polygon", "circle", "text"}
SCRIPT = cli.ROOT / "tools" / "ch16_figures.py"


def draw(data=None):
    """{figure: SVG text} from these data, through files as in the script."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (data or DATA).items():
            cli.write_json(Path(folder) / f"{name}.json", content)
        return ch16_figures.draw(Path(folder))


FIGURES = draw()


def texts(name, figures=None):
    """What can be read in a figure."""
    return [node.text for node in xml.fromstring((figures or FIGURES)[name]).iter(f"{SVG}text")]


def shapes(name, tag, **wanted):
    """The shapes of a figure with these attributes, as dicts."""
    return [node.attrib for node in xml.fromstring(FIGURES[name]).iter(SVG + tag)
            if all(node.get(key) == value for key, value in wanted.items())]


class Form(unittest.TestCase):
    """Every figure."""

    def each(self):
        self.assertEqual(len(FIGURES), 6)
        for name, text in FIGURES.items():
            yield name, text, xml.fromstring(text)

    def test_screen_readers_get_a_role_a_title_and_a_description(self):
        for name, _, root in self.each():
            title, desc = root[0], root[1]
            self.assertEqual((title.tag, desc.tag), (SVG + "title", SVG + "desc"))
            self.assertEqual(root.get("role"), "img")
            self.assertEqual(root.get("aria-labelledby"), f"{title.get('id')} {desc.get('id')}")
            self.assertTrue(title.text.startswith(f"Figure {name[3:].replace('_', '.')}: "))
            self.assertGreater(len(desc.text), 60)
            ids = [node.get("id") for node in root.iter() if node.get("id")]
            self.assertEqual(len(ids), len(set(ids)))
            self.assertTrue(all(key.startswith(f"{name}-") for key in ids))

    def test_they_are_plain_shapes_and_text_as_text_on_a_light_card(self):
        for name, _, root in self.each():
            defs = root.find(SVG + "defs")
            inside = set(defs.iter()) if defs is not None else set()
            for node in root[2:]:
                if node not in inside:
                    self.assertIn(node.tag.replace(SVG, ""), SHAPES)
            card = root.find(SVG + "rect")
            self.assertEqual(card.get("fill"), svg.CARD)
            self.assertEqual((float(card.get("width")) + 1, float(card.get("height")) + 1),
                             (float(root.get("width")), float(root.get("height"))))
            self.assertEqual(root.get("viewBox"),
                             f"0 0 {root.get('width')} {root.get('height')}")
            self.assertGreater(len(texts(name)), 10)

    def test_nothing_needs_another_file_or_the_network(self):
        for _, text, _ in self.each():
            self.assertNotRegex(text, r"href|@import|<image|<script|<style|<use")
            self.assertEqual(re.findall(r"https?://[^\"]*", text), ["http://www.w3.org/2000/svg"])

    def test_no_text_leaves_the_card_or_runs_into_another(self):
        for name, _, root in self.each():
            boxes = [(node.text, *box(node)) for node in root.iter(SVG + "text")]
            for words, left, top, right, bottom in boxes:
                self.assertTrue(8 <= left and right <= float(root.get("width")) - 8, words)
                self.assertTrue(8 <= top and bottom <= float(root.get("height")) - 8, words)
            for i, (words, left, top, right, bottom) in enumerate(boxes):
                for other, left2, top2, right2, bottom2 in boxes[:i]:
                    apart = right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
                    self.assertTrue(apart, f"{words!r} runs into {other!r}")

    def test_colours_are_told_apart_by_a_second_sign(self):
        for figure, count in (("fig16_5", 5), ("fig16_6", 3)):
            dashes = {line["stroke-dasharray"] for line in shapes(figure, "polyline")}
            self.assertEqual(len(dashes), count)
        for figure, count in (("fig16_3", 1), ("fig16_4", 2)):
            self.assertEqual(len(shapes(figure, "pattern")), count)


def box(node):
    """(left, top, right, bottom) of a text, in a wide font."""
    size = float(node.get("font-size"))
    width = 0.6 * size * len(node.text) * (1.05 if node.get("font-weight") else 1)
    x, y = float(node.get("x")), float(node.get("y"))
    if node.get("transform"):
        assert node.get("transform").startswith("rotate(-90 ")
        return x - 0.8 * size, y - width / 2, x + 0.2 * size, y + width / 2
    left = x - width * {"start": 0, "middle": 0.5, "end": 1}[node.get("text-anchor")]
    return left, y - 0.8 * size, left + width, y + 0.2 * size


class Content(unittest.TestCase):
    """What the chapter says of each figure, measured in the picture."""

    def test_16_1_shows_the_tokens_of_two_blocks(self):
        shown = texts("fig16_1")
        blocks = PRINTED["example_a"]["blocks"][:2]
        tokens = [str(token) for entry in blocks for key in ("block", "choice", "new")
                  for token in entry[key]]
        self.assertEqual([words for words in shown if words.isdigit()], tokens)
        self.assertEqual([words for words in shown if words in "=\u2260"], list("===\u2260"))
        self.assertIn("Block 1: 3 of 3 accepted", shown)
        self.assertIn("Block 2: 0 of 3 accepted", shown)
        self.assertIn("1 new token from one pass", shown)

    def test_16_2_fills_the_cells_that_are_in_a_slice(self):
        cells = [rect for rect in shapes("fig16_2", "rect") if rect["width"] == "38"]
        self.assertEqual(len(cells), 4 * 8)
        for i in range(4):
            filled = [rect["fill"] != "#ffffff" for rect in cells[8 * i:8 * i + 8]]
            self.assertEqual(filled, [True] * (5 + i) + [False] * (3 - i))
        self.assertIn("slice 0 \u2026 4: 5 keys", texts("fig16_2"))

    def test_16_3_has_bars_as_long_as_the_cycles(self):
        cycles = [row["rtl_cycles"] for row in PRINTED["run"]]
        bars = [float(rect["width"]) for rect in shapes("fig16_3", "rect", height="22")]
        self.assertEqual(len(bars), 7)
        for count, bar in zip(cycles, bars):
            self.assertAlmostEqual(bar / bars[0], count / cycles[0], delta=0.0005)
            self.assertIn(f"{count:,}", texts("fig16_3"))
        self.assertIn("clock cycles (RTL)", texts("fig16_3"))

    def test_16_4_stacks_the_units_to_the_totals(self):
        parts = [float(rect["width"]) for rect in shapes("fig16_4", "rect", height="44")]
        self.assertEqual(len(parts), 8)
        block, steps = sum(parts[:4]), sum(parts[4:])
        self.assertAlmostEqual(block / steps, 12330 / 29986, delta=0.001)
        self.assertAlmostEqual(parts[0] / block, 7732 / 12330, delta=0.001)
        for words in ("12,330", "29,986", "7,732", "2,856", "1,532"):
            self.assertIn(words, texts("fig16_4"))

    def test_16_5_draws_the_measured_speedups(self):
        self.lines("fig16_5", list(
            [speedup for _, speedup in row] for row in
            PRINTED["example_b"]["grid_percent_accepted_and_speedup"].values()))

    def test_16_6_draws_the_derived_speedups_and_rings_the_best(self):
        derived = [[(1 - a ** (k + 1)) / (1 - a) / (1 + 0.05 * k) for k in range(1, 17)]
                   for a in (0.6, 0.8, 0.9)]
        self.lines("fig16_6", derived)
        self.assertEqual(len(shapes("fig16_6", "circle", r="10")), 3)
        self.assertEqual([words for words in texts("fig16_6") if words.startswith("k = ")],
                         ["k = 4: 1.92\u00d7", "k = 8: 3.09\u00d7", "k = 13: 4.67\u00d7"])
        self.assertTrue(texts("fig16_6")[0].startswith("Derived, not measured"))

    def lines(self, figure, values):
        """The figure's lines lie where these values do; 0 and 1 are found from the axis."""
        zero, one = (next(float(node.get("y")) - 4 for node in
                          xml.fromstring(FIGURES[figure]).iter(SVG + "text")
                          if node.text == words) for words in ("0.0\u00d7", "1.0\u00d7"))
        drawn = [[float(point.split(",")[1]) for point in line["points"].split()]
                 for line in shapes(figure, "polyline")]
        self.assertEqual([len(line) for line in drawn], [len(line) for line in values])
        for line, wanted in zip(drawn, values):
            for y, value in zip(line, wanted):
                self.assertAlmostEqual((zero - y) / (zero - one), value, delta=0.002)


class DrawnFromTheFiles(unittest.TestCase):
    def test_a_changed_number_changes_the_figures_that_show_it_and_no_other(self):
        changes = (
            (("ch16_example_a", "trace", 0, "block", 1), {"fig16_1"}),
            (("ch16_example_a", "trace", 1, "choice", 3), {"fig16_1"}),
            (("ch16_example_a", "mask", "rows", 2, "keys", 1), {"fig16_2"}),
            (("ch16_example_a", "mask", "cached"), {"fig16_2"}),
            (("ch16_run", 3, "rtl_cycles"), {"fig16_3"}),
            (("ch16_run", 6, "speedup"), {"fig16_3"}),
            (("ch16_example_a", "verify", 1), {"fig16_4"}),
            (("ch16_example_a", "single", 2, 0), {"fig16_4"}),
            (("ch16_example_b", "grid", 12, "speedup"), {"fig16_5"}),
            (("ch16_example_b", "serve", "curves", 1, "speedup", 8), {"fig16_6"}),
            (("ch16_example_b", "serve", "curves", 2, "best_k"), {"fig16_6"}),
        )
        for path, expected in changes:
            with self.subTest(path=path):
                data = copy.deepcopy(DATA)
                entry = data
                for key in path[:-1]:
                    entry = entry[key]
                entry[path[-1]] += 1
                figures = draw(data)
                changed = {name for name in FIGURES if figures[name] != FIGURES[name]}
                self.assertEqual(changed, expected)

    def test_without_the_rtl_the_cycles_are_the_models_and_the_axis_says_so(self):
        data = copy.deepcopy(DATA)
        for row in data["ch16_run"]:
            row["rtl_cycles"] = None
        self.assertIn("clock cycles (model)", texts("fig16_3", draw(data)))

    def test_the_recorded_figures_are_these_bytes_in_every_environment(self):
        for environment in ({"PYTHONHASHSEED": "0", "LC_ALL": "C"},
                            {"PYTHONHASHSEED": "1", "LC_ALL": "de_DE.UTF-8"}):
            with tempfile.TemporaryDirectory() as folder:
                ended = subprocess.run([sys.executable, SCRIPT, "--out", folder], cwd=folder,
                                       env={**os.environ, **environment}, capture_output=True,
                                       text=True, timeout=60)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                self.assertEqual(ended.stdout.split(),
                                 [f"{folder}/fig16_{i}.svg" for i in range(1, 7)])
                for i in range(1, 7):
                    name = f"fig16_{i}.svg"
                    self.assertEqual((Path(folder) / name).read_bytes(),
                                     (cli.OUT / name).read_bytes(), name)

    def test_missing_or_broken_data_is_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(folder, f"cannot read {folder}/ch16_run.json: No such file or directory; "
                         "run python3 tools/ch16_run.py first")
            (Path(folder) / "ch16_run.json").write_text("[")
            self.refused(folder, f"{folder}/ch16_run.json is not JSON (Expecting value: line 1 "
                         "column 2 (char 1)); run python3 tools/ch16_run.py again")

    def refused(self, folder, sentence):
        with self.assertRaises(cli.UserError) as caught:
            ch16_figures.main(["--data", folder, "--out", folder])
        self.assertEqual(str(caught.exception), sentence)


class Helpers(unittest.TestCase):
    def test_numbers_are_rounded_to_a_tenth(self):
        self.assertEqual([svg.number(value) for value in (3, 2.04, 2.06, 10.0, "none")],
                         ["3", "2", "2.1", "10", "none"])

    def test_words_are_escaped(self):
        picture = svg.Picture("p", 10, 10, "a < b", 'say "c" & d')
        picture.text(1, 2, "<&>")
        root = xml.fromstring(picture.render())
        self.assertEqual((root[0].text, root[1].text, root[-1].text),
                         ("a < b", 'say "c" & d', "<&>"))

    def test_a_scale_places_values_and_ticks(self):
        scale = svg.Scale(0, 2, 100, 0)
        self.assertEqual([scale(0), scale(0.5), scale(2)], [100, 75, 0])
        self.assertEqual(scale.ticks(0.5), [0, 0.5, 1, 1.5, 2])
        self.assertEqual(svg.Scale(1, 5, 0, 1).ticks(2), [2, 4])

    def test_an_axis_ends_at_the_next_step(self):
        self.assertEqual([svg.round_up(value, 0.5) for value in (1.93, 2, 2.01)], [2, 2, 2.5])


if __name__ == "__main__":
    unittest.main()
