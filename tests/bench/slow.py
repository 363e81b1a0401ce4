"""A slow source for figures and benchmarks: a directory again, throttled (throttle.c)."""
import os
import subprocess
import time


class Slow:
    """Mounted for the time of a `with`: a limit of bytes per second for all readers, and of ms per read."""

    def __init__(self, bench, source, rate, delay=0):
        self.path = f'{bench.HERE}/slow'
        self.command = [f'{bench.PROGRAMS}/throttle', source, self.path, str(int(rate)), str(delay)]

    def __enter__(self):
        os.makedirs(self.path, exist_ok=True)
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.ismount(self.path):
            if self.process.poll() is not None:
                raise RuntimeError('the throttled source did not start')
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        subprocess.run(['umount', self.path], check=True)
        self.process.wait()
        os.rmdir(self.path)

    def read(self):
        """Bytes, so far."""
        return int(os.getxattr(self.path, 'user.read'))
