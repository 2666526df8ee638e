"""Pictures as SVG text: shapes on a light card, so that they read alike on light and dark pages.

    picture = svg.Picture("fig16_5", 720, 400, "Speedup against k", "One line per draft ...")
    picture.text(20, 30, "Speedup", size=15, bold=True)
    cli.write_text(path, picture.render())

Numbers are rounded to a tenth of a pixel and attributes stand in the order they are given, so the
bytes are the same from run to run. Colours are those of Okabe and Ito, which people who do not see
all colours can tell apart; a pattern, a dash or a marker's shape says the same once more.
"""

import math
from xml.sax.saxutils import escape, quoteattr

BLACK = "#1b1b1b"
GREY = "#5c5c5c"
MIDDLE = "#9a9a96"
LIGHT = "#d9d9d6"
CARD = "#fdfdfb"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"

FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
MARKERS = ("circle", "square", "diamond", "triangle", "cross")


class Picture:
    """Shapes in drawing order; all coordinates are pixels from the top left corner."""

    def __init__(self, name, width, height, title, desc):
        self.name = name
        self.width = width
        self.height = height
        self.title = title
        self.desc = desc
        self.patterns = []
        self.shapes = []
        self.rect(0.5, 0.5, width - 1, height - 1, fill=CARD, stroke=LIGHT, rx=6)

    def rect(self, x, y, width, height, fill="none", **style):
        self.add("rect", x=x, y=y, width=width, height=height, fill=fill, **style)

    def line(self, x1, y1, x2, y2, stroke=BLACK, **style):
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, **style)

    def polyline(self, points, stroke=BLACK, **style):
        self.add("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in points),
                 fill="none", stroke=stroke, **style)

    def polygon(self, points, fill=BLACK, **style):
        self.add("polygon", points=" ".join(f"{number(x)},{number(y)}" for x, y in points),
                 fill=fill, **style)

    def circle(self, x, y, r, fill=BLACK, **style):
        self.add("circle", cx=x, cy=y, r=r, fill=fill, **style)

    def text(self, x, y, words, size=13, anchor="start", fill=BLACK, bold=False, halo=False,
             **style):
        """Text whose base line is at y; anchor: start, middle or end; halo: read across lines."""
        if bold:
            style["font_weight"] = "bold"
        if halo:
            style.update(stroke=CARD, stroke_width=4, paint_order="stroke")
        self.shapes.append(element("text", words, x=x, y=y, font_size=size, text_anchor=anchor,
                                   fill=fill, **style))

    def upright(self, x, y, words):
        """Text centred on (x, y), reading upwards: the name of a vertical axis."""
        self.text(x, y, words, anchor="middle", transform=f"rotate(-90 {number(x)} {number(y)})")

    def marker(self, shape, x, y, size=5, fill=BLACK):
        """One of MARKERS, centred on (x, y)."""
        style = {"fill": fill, "stroke": CARD, "stroke_width": 1}
        if shape == "circle":
            self.circle(x, y, size, **style)
        elif shape == "square":
            self.rect(x - size, y - size, 2 * size, 2 * size, **style)
        elif shape == "diamond":
            reach = 1.35 * size
            self.polygon([(x, y - reach), (x + reach, y), (x, y + reach), (x - reach, y)], **style)
        elif shape == "triangle":
            reach = 1.2 * size
            self.polygon([(x, y - reach), (x + reach, y + size), (x - reach, y + size)], **style)
        else:
            for slope in (-1, 1):
                self.line(x - size, y - slope * size, x + size, y + slope * size, stroke=fill,
                          stroke_width=2.6)

    def hatch(self, colour, angle, gap=6):
        """A fill: the colour with white stripes at the angle, every `gap` pixels."""
        key = f"{self.name}-hatch{len(self.patterns)}"
        inside = (element("rect", width=gap, height=gap, fill=colour)
                  + element("rect", width=1.4, height=gap, fill="#ffffff"))
        self.patterns.append(element("pattern", inside, raw=True, id=key, width=gap, height=gap,
                                     patternUnits="userSpaceOnUse",
                                     patternTransform=f"rotate({number(angle)})"))
        return f"url(#{key})"

    def add(self, tag, **attributes):
        self.shapes.append(element(tag, **attributes))

    def render(self):
        """The picture as the text of an SVG file."""
        title, desc = f"{self.name}-title", f"{self.name}-desc"
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
                f'height="{self.height}" viewBox="0 0 {self.width} {self.height}" role="img" '
                f'aria-labelledby="{title} {desc}" font-family={quoteattr(FONT)}>')
        lines = [head, element("title", self.title, id=title), element("desc", self.desc, id=desc)]
        if self.patterns:
            lines.append(element("defs", "".join(self.patterns), raw=True))
        return "\n".join(lines + self.shapes + ["</svg>"]) + "\n"


def element(tag, inside="", raw=False, **attributes):
    """An element's text. An underscore in an attribute's name stands for a hyphen."""
    written = "".join(f" {name.replace('_', '-')}={quoteattr(number(value))}"
                      for name, value in attributes.items())
    content = inside if raw else escape(inside)
    return f"<{tag}{written}>{content}</{tag}>" if content else f"<{tag}{written}/>"


def number(value):
    """A number to a tenth, without needless zeros; anything else as it is."""
    if isinstance(value, str):
        return value
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


class Scale:
    """Places values of an axis between two pixels, and says where its ticks are."""

    def __init__(self, least, most, first, last):
        self.least = least
        self.most = most
        self.first = first
        self.last = last

    def __call__(self, value):
        share = (value - self.least) / (self.most - self.least)
        return self.first + share * (self.last - self.first)

    def ticks(self, step):
        """The multiples of `step` on the axis."""
        first = math.ceil(self.least / step - 1e-9)
        last = math.floor(self.most / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def round_up(value, step):
    """The smallest multiple of `step` that is not below `value`: where an axis ends."""
    return math.ceil(value / step - 1e-9) * step
