#!/usr/bin/python3
"""What draws the figures: medians and ranges are where they belong, no name is inside a frame, results are kept. Of the
figures in etc/figures: each says how it was made, and shows the range of what was measured."""
import glob
import json
import os
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, f'{here}/../lib']

import plot  # noqa: E402
import tap  # noqa: E402
from drawing import Drawing  # noqa: E402

FIGURES = f'{here}/../../etc/figures'
COMPUTED = {'imbalance.svg', 'model.svg', 'model-echo.svg'}  # which dealfs draws


def panel(logarithmic=False):
    return plot.Panel('title', 'x', 'y', (0, 10), (1, 100) if logarithmic else (0, 100), logarithmic=logarithmic)


def circles(one):
    return [tuple(map(float, found)) for found in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', one.svg(0, 0))]


class Plot(unittest.TestCase):
    def test_a_point_is_the_median(self):
        one = panel()
        one.medians([(5, [10, 90, 20])], 0)
        self.assertEqual(circles(one), [(round(one.px(5), 1), round(one.py(20), 1))])

    def test_its_bar_is_the_range(self):
        one = panel()
        one.medians([(5, [10, 90, 20])], 0)
        self.assertIn(f'points="{one.px(5):.1f},{one.py(10):.1f} {one.px(5):.1f},{one.py(90):.1f}"', one.svg(0, 0))

    def test_what_is_beyond_the_frame_is_clipped(self):
        one = panel('y')
        one.spread(5, [0.1, 1000])
        self.assertIn(f'points="{one.px(5):.1f},{one.py(1):.1f} {one.px(5):.1f},{one.py(100):.1f}"', one.svg(0, 0))

    def test_names_are_below_the_axis(self):
        one = panel()
        for colour in range(7):
            one.line([(0, 0), (10, 100)], colour, f'line {colour}')
        one.rule(50, 'a limit')
        texts = re.findall(r'<text x="[\d.]+" y="([\d.]+)"[^>]*>([^<]+)<', one.svg(0, 0))
        places = {text: float(y) for y, text in texts}
        for name in [f'line {colour}' for colour in range(7)] + ['a limit']:
            self.assertGreater(places[name], plot.HEIGHT)
            self.assertLess(places[name], plot.HEIGHT + one.legend_height() + 1)

    def test_notes_are_no_wider_than_the_figure(self):
        with tempfile.TemporaryDirectory() as folder:
            plot.write(f'{folder}/one.svg', [[panel()]], ['word ' * 60])
            with open(f'{folder}/one.svg') as f:
                lines = re.findall(r'font-size="11" fill="#333">([^<]+)<', f.read())
        self.assertGreater(len(lines), 3)
        self.assertLess(max(map(len, lines)) * plot.LETTER, plot.WIDTH)


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.environ['FIGURE_RESULTS'] = self.folder.name
        self.addCleanup(os.environ.pop, 'FIGURE_RESULTS')
        self.said = []

    def drawing(self):
        one = Drawing('some', False)
        one.say = lambda *words: self.said.append(words)
        return one

    def test_what_was_measured_is_not_measured_again(self):
        first = self.drawing().measured('key', lambda: [1, (2, 3)])
        again = self.drawing().measured('key', lambda: self.fail('it was'))
        self.assertEqual([first, again], [[1, [2, 3]]] * 2)

    def test_another_key_is_measured(self):
        self.drawing().measured('key', lambda: 1)
        self.assertEqual(self.drawing().measured('other', lambda: 2), 2)
        with open(f'{self.folder.name}/some.json') as f:
            self.assertEqual(sorted(json.load(f)), ['key', 'other'])

    def test_a_figure_says_load_and_command(self):
        one = self.drawing()
        one.measured('key', lambda: 1)
        self.assertRegex(one.made_by(), r'load average.* was \d+ to \d+.*FIGURE_ARGUMENTS=some$')

    def test_one_without_measurements_says_so(self):
        self.assertRegex(self.drawing().made_by(), '^Computed on .*FIGURE_ARGUMENTS=some$')


class Committed(unittest.TestCase):
    def test_each_figure_says_how_it_was_made(self):
        found = [path for path in glob.glob(f'{FIGURES}/*.svg') if os.path.basename(path) not in COMPUTED]
        self.assertGreater(len(found), 10)
        for path in found:
            with open(path) as f:
                words = ' '.join(re.sub('<[^>]*>', ' ', f.read()).split())
            self.assertIn('make figures FIGURE_ARGUMENTS=', words, path)


class Numbers(unittest.TestCase):
    def test_ticks_end_at_most_at_the_end(self):
        for most in 0.3, 1, 7, 30, 999:
            found = plot.ticks(most)
            self.assertLessEqual(found[-1], most)
            self.assertGreater(found[-1], most / 2)
            self.assertEqual(len({round(b - a, 9) for a, b in zip(found, found[1:])}), 1)


sys.exit(tap.run_units())
