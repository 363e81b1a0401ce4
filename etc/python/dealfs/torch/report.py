"""Reports to a mount how much of a rank's list has been read, and that it ends."""
import math
import time

EVERY = 0.2  # seconds between two positions


class Report:
    """Of one pass over a list. `unseen`: the mount cannot see which samples are read, so it is told: of records, and of
    what is read from a stream. Nothing depends on it, so errors are ignored: the mount may be gone or too old."""

    def __init__(self, mount, unseen, **which):
        self.mount, self.unseen, self.which, self.next = mount, unseen, which, 0

    def at(self, samples):
        if self.unseen and time.monotonic() >= self.next:
            self.next = time.monotonic() + EVERY
            if not self._ask('at', position=samples):
                self.next = math.inf  # no stream of this list is read

    def end(self, samples, stopped):
        """`stopped`: the pass may have ended early. `samples`: None if their number is not known."""
        self._ask('end', position=samples if self.unseen else None, stopped=stopped)

    def _ask(self, verb, **keys):
        try:
            return self.mount.ask(verb, **self.which, **keys)
        except OSError:
            return None
