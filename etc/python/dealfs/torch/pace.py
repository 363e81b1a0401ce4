"""How long steps of a training wait for their data, and how long they take themselves."""
import time

LEAST, MOST = 1, 16


class Pace:
    """for batch in pace.over(loader): `wait` and `step` are seconds, in sum, since ratio() was asked last."""

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
        """R: the time to bring a batch over the time to train with it, 1 to 16. Where each was used `echo` times,
        bringing one took as long as so many steps with their waits."""
        ratio = echo * (self.wait + self.step) / self.step if self.step else LEAST
        self.wait = self.step = 0.0
        return round(min(max(ratio, LEAST), MOST), 2)
