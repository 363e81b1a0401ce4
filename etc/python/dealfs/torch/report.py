"""Reports to a mount how much of a rank's list has been read, and when the list ends."""
import errno
import math
import time

EVERY = 0.2  # seconds between two positions


class Report:
    """The reports of one pass over a list. `unseen`: the mount cannot observe which samples are read, as with records
    and streams, so the reports include the position. Errors are ignored, because training does not depend on reports:
    the mount may have ended or be too old."""

    def __init__(self, mount, unseen, **which):
        self.mount, self.unseen, self.which, self.next = mount, unseen, which, 0

    def at(self, samples):
        if self.unseen and time.monotonic() >= self.next:
            self.next = time.monotonic() + EVERY
            if self._ask('at', position=samples) == errno.ENOENT:
                self.next = math.inf  # no stream of this list is read

    def end(self, samples, stopped):
        """`stopped`: the pass may have ended early. `samples`: None if their number is not known."""
        self._ask('end', position=samples if self.unseen else None, stopped=stopped)

    def _ask(self, verb, **keys):
        try:
            self.mount.ask(verb, **self.which, **keys)
        except OSError as error:
            return error.errno
        return 0
