"""Moves samples to other nodes before each epoch. The request for the next epoch runs while this one is trained."""
import threading
import time
import warnings

GRACE = 1  # seconds that the mount gets to report the timeout itself


class Exchange:
    """The exchanges that rank 0 of a job requests. See dealfs-exchange(1).

    fraction        the part of each node's samples that moves to other nodes
    wait            seconds after which a request fails"""

    def __init__(self, mount, fraction, seed=0, wait=60):
        self.mount, self.fraction, self.seed, self.wait = mount, fraction, seed, wait
        self._epoch = self._thread = None  # the last request
        self._layout = self._why = None  # its result
        self._warned = False

    def __getstate__(self):
        return {**self.__dict__, '_thread': None, '_epoch': None}

    def ask(self, epoch):
        """Request the exchange for an epoch, in the background. Does nothing while another request runs."""
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
        """The layout that the nodes took for this epoch, or None if nothing was exchanged. Warns the first time that
        an exchange fails. Waits for a running request, for at most `wait` + GRACE seconds since it was sent."""
        if self._epoch != epoch:
            return None
        self._thread.join(max(0, self._until - time.monotonic()))
        if self._thread.is_alive():
            self._why = f'the mount did not reply within {self.wait} s'
            layout = None  # even if the reply arrives now: all ranks must use the same layout
        else:
            layout = self._layout
        if self._why and not self._warned:
            self._warned = True
            warnings.warn(f'no samples were exchanged for epoch {epoch}, it uses the current layout: {self._why}',
                          RuntimeWarning, stacklevel=2)
        return layout
