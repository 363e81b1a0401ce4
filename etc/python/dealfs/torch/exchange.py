"""Samples that change their node before each epoch: the request for the next epoch runs while this one is trained."""
import threading
import time
import warnings

GRACE = 1  # seconds in which a mount that is too late says so itself


class Exchange:
    """The exchanges of a job, as its rank 0 asks for them. See dealfs-exchange(1).

    fraction        the part of each node's samples that changes its node
    wait            seconds after which a request fails"""

    def __init__(self, mount, fraction, seed=0, wait=60):
        self.mount, self.fraction, self.seed, self.wait = mount, fraction, seed, wait
        self._epoch = self._thread = None  # what was asked for last
        self._layout = self._why = None  # what came of it
        self._warned = False

    def ask(self, epoch):
        """Ask in the background that the samples for an epoch move. One request runs at a time."""
        if self._epoch == epoch or (self._thread and self._thread.is_alive()):
            return
        self._epoch, self._layout, self._why = epoch, None, None
        self._until = time.monotonic() + self.wait + GRACE
        self._thread = threading.Thread(target=self._run, args=(epoch,), name='dealfs-exchange', daemon=True)
        self._thread.start()

    def _run(self, epoch):
        try:
            self._layout = self.mount.exchange(epoch, self.fraction, self.seed, self.wait)['layout']
        except Exception as error:  # of any kind: training does not depend on it
            self._why = str(error) or repr(error)

    def layout(self, epoch):
        """The layout that the nodes took for this epoch; None: the samples stay where they are, which it warns of once.
        Waits for a request that is running, until `wait` has passed since it was asked."""
        if self._epoch != epoch:
            return None
        self._thread.join(max(0, self._until - time.monotonic()))
        if self._thread.is_alive():
            self._why = f'the mount did not reply within {self.wait} s'
            layout = None  # also if the reply comes now: no rank may see another one
        else:
            layout = self._layout
        if self._why and not self._warned:
            self._warned = True
            warnings.warn(f'epoch {epoch} is read from where the samples are, none was exchanged: {self._why}',
                          RuntimeWarning, stacklevel=2)
        return layout
