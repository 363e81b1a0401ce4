"""Plots as SVG: panels of lines or of stacked bars, side by side and below each other, with what they were made by."""
import math
from xml.sax.saxutils import escape

COLOURS = ['#1b6ca8', '#d1495b', '#3a9d5d', '#e0a030', '#7b5ea7', '#505050', '#00a0a0', '#a05030']
WIDTH, HEIGHT = 400, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 34, 46


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


class Panel:
    """One frame with its axes. x are numbers, or positions of bars that have names."""

    def __init__(self, title, x, y, x_range, y_range, x_ticks=None, logarithmic=False):
        self.parts, self.legend, self.legend_at = [], [], None
        self.scale = math.log if logarithmic else float
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
                self.rule(value)
                self.text(LEFT - 5, self.py(value) + 4, f'{value:g}', size=10, anchor='end')

    def part(self, value, low, high):
        return (self.scale(value) - self.scale(low)) / (self.scale(high) - self.scale(low))

    def px(self, x):
        return LEFT + self.part(x, self.x0, self.x1) * (WIDTH - LEFT - RIGHT)

    def py(self, y):
        return HEIGHT - BOTTOM - self.part(y, self.y0, self.y1) * (HEIGHT - TOP - BOTTOM)

    def text(self, x, y, text, size=11, anchor='middle', turn=False):
        place = f'transform="translate({x:.1f} {y:.1f}) rotate(-90)"' if turn else f'x="{x:.1f}" y="{y:.1f}"'
        self.parts.append(f'<text {place} font-size="{size}" text-anchor="{anchor}">{escape(str(text))}</text>')

    def rule(self, y, colour='#ddd', label=None):
        dashes = ' stroke-dasharray="5 3"' if label else ''
        self.parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.py(y):.1f}" y2="{self.py(y):.1f}" '
                          f'stroke="{colour}"{dashes}/>')
        if label:
            self.text(WIDTH - RIGHT - 4, self.py(y) - 4, label, size=10, anchor='end')

    def line(self, points, colour, name=None, marks=False, dashed=False):
        places = [(self.px(x), self.py(y)) for x, y in points]
        dashes = ' stroke-dasharray="4 3"' if dashed else ''
        self.parts.append(f'<polyline fill="none" stroke="{COLOURS[colour]}" stroke-width="1.6"{dashes} points="'
                          + ' '.join(f'{x:.1f},{y:.1f}' for x, y in places) + '"/>')
        for x, y in places if marks else []:
            self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{COLOURS[colour]}"/>')
        self.name(colour, name)

    def mark(self, x, y, colour):
        self.parts.append(f'<circle cx="{self.px(x):.1f}" cy="{self.py(y):.1f}" r="3.5" fill="{COLOURS[colour]}"/>')

    def bar(self, x, width, heights, colours=range(len(COLOURS))):
        """Parts on top of each other, the colours in turn."""
        base = self.y0
        for colour, height in zip(colours, heights):
            top = self.py(base + height)
            self.parts.append(f'<rect x="{self.px(x - width / 2):.1f}" y="{top:.1f}" fill="{COLOURS[colour]}" '
                              f'width="{self.px(x + width / 2) - self.px(x - width / 2):.1f}" '
                              f'height="{self.py(base) - top:.1f}"/>')
            base += height

    def name(self, colour, name):
        if name is not None and (colour, name) not in self.legend:
            self.legend.append((colour, name))

    def svg(self, x, y, legend_at):
        out = list(self.parts)
        for i, (colour, name) in enumerate(self.legend):
            at = (LEFT + 12, TOP + 14 + 14 * i) if (self.legend_at or legend_at) == 'top' else \
                (WIDTH - RIGHT - 120, HEIGHT - BOTTOM - 14 * (len(self.legend) - i) + 4)
            out.append(f'<rect x="{at[0]}" y="{at[1] - 8}" width="14" height="8" fill="{COLOURS[colour]}"/>'
                       f'<text x="{at[0] + 19}" y="{at[1]}" font-size="10">{escape(name)}</text>')
        return f'<g transform="translate({x} {y})">' + '\n'.join(out) + '</g>'


def write(path, rows, notes, legend_at='bottom'):
    """`rows` of panels; `notes` stand below them, a line each."""
    width = WIDTH * max(map(len, rows))
    height = HEIGHT * len(rows) + 16 * len(notes) + 12
    panels = [panel.svg(WIDTH * i, HEIGHT * j, legend_at) for j, row in enumerate(rows) for i, panel in enumerate(row)]
    texts = [f'<text x="12" y="{HEIGHT * len(rows) + 16 * (i + 1)}" font-size="11" fill="#333">{escape(note)}</text>'
             for i, note in enumerate(notes)]
    with open(path, 'w') as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
                f'<rect width="{width}" height="{height}" fill="white"/>\n' + '\n'.join(panels + texts) + '\n</svg>\n')
