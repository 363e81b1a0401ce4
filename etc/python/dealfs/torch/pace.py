"""Measures how long the steps of a training wait for data, and how long they compute."""
import time

LEAST, MOST = 1, 16


class Pace:
    """for batch in pace.over(loader): `wait` and `step` are total seconds since the last call of ratio()."""

    def __init__(self):
        self.wait = self.step = 0.0

    def over(self, loader):
        before = time.monotonic()
        for batch in loader:
            came = time.monotonic()
            yield batch
            done = time.monotonic()
            self.wait, self.step, before = self.wait + came - before, self.step + done - came, done

    def ratio(self, echo=1):
        """R, from 1 to 16: the time to load a batch, divided by the time to train with it. `echo`: how many times each
        batch was used. Loading one batch then took as long as `echo` steps together with their waits."""
        ratio = echo * (self.wait + self.step) / self.step if self.step else LEAST
        self.wait = self.step = 0.0
        return round(min(max(ratio, LEAST), MOST), 2)
