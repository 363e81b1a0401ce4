"""Plots as SVG: panels of lines or of stacked bars, side by side and below each other. What was measured several times
is drawn as its median with its range. Names are below a panel, so that none of them covers a line."""
import math
import statistics
import textwrap
from xml.sax.saxutils import escape

COLOURS = ['#1b6ca8', '#d1495b', '#3a9d5d', '#e0a030', '#7b5ea7', '#505050', '#00a0a0', '#a05030']
WIDTH, HEIGHT = 400, 300  # of a panel without its legend
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 34, 46
LETTER = 5.9  # pixels of one at the size of notes


def ticks(most, n=5):
    """Round numbers from 0 to `most` or a little less."""
    step = 10 ** len(str(int(most))) if most >= 1 else 1.0
    while step * n > most:
        step = next(s for s in (step / 2, step / 2.5, step / 5) if s * n <= most or s == step / 5)
    return [i * step for i in range(int(most / step + 1e-9) + 1)]


def decades(least, most):
    """1, 10, 100 … and what is between them, where there are few."""
    low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    return [10 ** n * step for n in range(low, high + 1) for step in steps if least <= 10 ** n * step <= most]


def part(scale, value, low, high):
    return (scale(value) - scale(low)) / (scale(high) - scale(low))


class Panel:
    """One frame with its axes. x are numbers, or positions of bars that have names. Logarithmic are both axes (True),
    one ('y'), or none."""

    def __init__(self, title, x, y, x_range, y_range, x_ticks=None, logarithmic=False):
        self.parts, self.legend = [], []
        self.x_scale = math.log if logarithmic is True else float
        self.y_scale = math.log if logarithmic else float
        (self.x0, self.x1), (self.y0, self.y1) = x_range, y_range
        self.text(WIDTH / 2, 20, title, size=13)
        self.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x)
        self.text(13, (TOP + HEIGHT - BOTTOM) / 2, y, turn=True)
        self.parts.append(f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
                          f'height="{HEIGHT - TOP - BOTTOM}" fill="none" stroke="#333"/>')
        for value, label in x_ticks or [(v, f'{v:g}') for v in ticks(self.x1)]:
            self.text(self.px(value), HEIGHT - BOTTOM + 15, label, size=10)
        for value in decades(self.y0, self.y1) if logarithmic else ticks(self.y1):
            if value >= self.y0:
                self.stroke([(self.x0, value), (self.x1, value)], '#ddd')
                self.text(LEFT - 5, self.py(value) + 4, f'{value:g}', size=10, anchor='end')

    def px(self, x):
        return LEFT + part(self.x_scale, x, self.x0, self.x1) * (WIDTH - LEFT - RIGHT)

    def py(self, y):
        return HEIGHT - BOTTOM - part(self.y_scale, y, self.y0, self.y1) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, text, size=11, anchor='middle', turn=False):
        place = f'transform="translate({x:.1f} {y:.1f}) rotate(-90)"' if turn else f'x="{x:.1f}" y="{y:.1f}"'
        self.parts.append(f'<text {place} font-size="{size}" text-anchor="{anchor}">{escape(str(text))}</text>')

    def stroke(self, points, colour, dashed=False, width=1.0):
        dashes = ' stroke-dasharray="4 3"' if dashed else ''
        self.parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes} points="'
                          + ' '.join(f'{self.px(x):.1f},{self.py(y):.1f}' for x, y in points) + '"/>')

    def rule(self, y, name, colour=5):
        self.line([(self.x0, y), (self.x1, y)], colour, name, dashed=True)

    def line(self, points, colour, name=None, dashed=False):
        self.stroke(points, COLOURS[colour], dashed, 1.6)
        self.name(colour, name, dashed)

    def medians(self, points, colour, name=None, joined=True, labels=None):
        """`points`: (x, values). A circle at the median, and a bar from the least value to the most."""
        middles = [(x, statistics.median(values)) for x, values in points]
        if joined:
            self.stroke(middles, COLOURS[colour], width=1.6)
        for (x, values), (_, middle) in zip(points, middles):
            self.spread(x, values, COLOURS[colour])
            self.parts.append(f'<circle cx="{self.px(x):.1f}" cy="{self.py(middle):.1f}" r="3" '
                              f'fill="{COLOURS[colour]}"/>')
        for (x, values), label in zip(points, labels or []):
            self.text(self.px(x), self.py(max(values)) - 5, label, size=9)
        self.name(colour, name)

    def spread(self, x, values, colour='#222'):
        """Clipped to the frame."""
        low, high = max(min(values), self.y0), min(max(values), self.y1)
        self.stroke([(x, low), (x, high)], colour)
        for y in (low, high):
            self.parts.append(f'<line x1="{self.px(x) - 3:.1f}" x2="{self.px(x) + 3:.1f}" y1="{self.py(y):.1f}" '
                              f'y2="{self.py(y):.1f}" stroke="{colour}"/>')

    def bar(self, x, width, heights, colours=range(len(COLOURS))):
        """Parts on top of each other, the colours in turn."""
        base = self.y0
        for colour, height in zip(colours, heights):
            top = self.py(base + height)
            self.parts.append(f'<rect x="{self.px(x - width / 2):.1f}" y="{top:.1f}" fill="{COLOURS[colour]}" '
                              f'width="{self.px(x + width / 2) - self.px(x - width / 2):.1f}" '
                              f'height="{self.py(base) - top:.1f}"/>')
            base += height

    def median_bar(self, x, width, values, colour, label=None, size=10):
        """A bar up to the median, with its range."""
        low = self.y0 if self.y_scale is math.log else 0
        self.bar(x, width, [statistics.median(values) - low], [colour])
        if len(values) > 1:
            self.spread(x, values)
        if label is not None:
            self.text(self.px(x), self.py(max(values)) - 5, label, size=size)

    def name(self, colour, name, dashed=False):
        if name is not None and (colour, name, dashed) not in self.legend:
            self.legend.append((colour, name, dashed))

    def columns(self):
        return 1 if any(len(name) > 26 for _, name, _ in self.legend) else 2

    def legend_height(self):
        return 14 * math.ceil(len(self.legend) / self.columns()) + 6 if self.legend else 0

    def svg(self, x, y):
        out = list(self.parts)
        for i, (colour, name, dashed) in enumerate(self.legend):
            row, column = divmod(i, self.columns())
            at = LEFT + column * (WIDTH - LEFT) / 2, HEIGHT + 10 + 14 * row
            dashes = ' stroke-dasharray="4 3"' if dashed else ''
            out.append(f'<line x1="{at[0]:.0f}" x2="{at[0] + 15:.0f}" y1="{at[1] - 4}" y2="{at[1] - 4}" '
                       f'stroke="{COLOURS[colour]}" stroke-width="{2 if dashed else 8}"{dashes}/>'
                       f'<text x="{at[0] + 20:.0f}" y="{at[1]}" font-size="10">{escape(name)}</text>')
        return f'<g transform="translate({x} {y})">' + '\n'.join(out) + '</g>'


def write(path, rows, notes):
    """`rows` of panels; `notes` are below them, each a paragraph."""
    width, y, panels = WIDTH * max(map(len, rows)), 0, []
    for row in rows:
        panels += [panel.svg(WIDTH * i, y) for i, panel in enumerate(row)]
        y += HEIGHT + max(panel.legend_height() for panel in row)
    lines = [line for note in notes for line in textwrap.wrap(note, int((width - 24) / LETTER))]
    texts = [f'<text x="12" y="{y + 16 * (i + 1)}" font-size="11" fill="#333">{escape(line)}</text>'
             for i, line in enumerate(lines)]
    height = y + 16 * len(lines) + 12
    with open(path, 'w') as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
                f'<rect width="{width}" height="{height}" fill="white"/>\n' + '\n'.join(panels + texts) + '\n</svg>\n')
