"""The tools to measure and draw a figure: programs, a folder for its data, and its results.

With $FIGURE_RESULTS results are kept there, one file per figure. `run` then draws a figure again without measuring it,
or resumes a measurement that was interrupted. To measure a figure again, remove its file."""
import json
import os
import platform
import subprocess
import sys
import time

import plot

K, M, G = 1 << 10, 1 << 20, 1 << 30


class Drawing:
    plot = plot

    def __init__(self, name, quick):
        self.name, self.quick = name, quick
        self.runs = 2 if quick else 5  # of each point, at least
        self.HERE = os.path.join(os.environ.get('DEALFS_BENCH_DIR', '/var/tmp/dealfs-bench'), 'figures')
        self.DEALFS = os.path.abspath(os.environ.get('DEALFS', './dealfs'))
        self.PROGRAMS = os.path.abspath(os.environ.get('BENCH_PROGRAMS', 'tests/bench'))
        self.figures = os.path.abspath(os.environ.get('FIGURES', 'etc/figures'))
        folder = os.environ.get('FIGURE_RESULTS')
        self.kept, self.results, self.used = folder and f'{folder}/{name}.json', {}, []
        if self.kept and os.path.exists(self.kept):
            with open(self.kept) as f:
                self.results = json.load(f)

    def sh(self, *command, **options):
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout

    def say(self, *words):
        print(*words, file=sys.stderr, flush=True)

    def measured(self, key, measure):
        """The result of `measure` after a round trip through JSON: tuples become lists, keys become strings."""
        if key not in self.results:
            load, result = os.getloadavg()[0], measure()
            self.results[key] = {'date': time.strftime('%Y-%m-%d'), 'load': [load, os.getloadavg()[0]],
                                 'result': json.loads(json.dumps(result))}
            if self.kept:
                with open(self.kept + '.new', 'w') as f:
                    json.dump(self.results, f)
                os.replace(self.kept + '.new', self.kept)
            self.say(key, result)
        self.used.append(self.results[key])
        return self.results[key]['result']

    def has(self, keys):
        """Were all of these measured before? Then nothing needs to be prepared."""
        return all(key in self.results for key in keys)

    def made_by(self):
        with open('/proc/meminfo') as f:
            memory = int(f.readline().split()[1]) // K // K
        arguments = f"'--quick {self.name}'" if self.quick else self.name
        machine = f'{len(os.sched_getaffinity(0))} cores, {memory} GiB, Linux {platform.release().split("-")[0]}'
        command = f'make figures FIGURE_ARGUMENTS={arguments}'
        if not self.used:
            return f'Computed on {time.strftime("%Y-%m-%d")} by {command}'
        dates, loads = [u['date'] for u in self.used], [load for u in self.used for load in u['load']]
        return (f'Measured on {max(dates)} on one machine with {machine}. Other programs ran meanwhile: the load '
                f'average, which includes this measurement, was {min(loads):.0f} to {max(loads):.0f}. Points are the '
                f'median of at least {self.runs} runs; thin bars are their range. {command}')

    def write(self, name, rows, *notes):
        os.makedirs(self.figures, exist_ok=True)
        plot.write(f'{self.figures}/{name}.svg', rows, [*notes, self.made_by()])
