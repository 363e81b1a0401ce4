"""Readers of a mount's slow/0, slow/1 and so on, a thread per file; each must get the source's bytes in the end.

    crowd.py SOURCE MOUNTPOINT COUNT

prints what went wrong; exit status 1 when anything did.
"""
import sys
import threading


class Crowd:
    def __init__(self, source, mountpoint, count):
        self.source, self.mountpoint, self.wrong = source, mountpoint, []
        self.threads = [threading.Thread(target=self.read, args=(i,)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def read(self, i):
        try:
            with open(f'{self.mountpoint}/slow/{i}', 'rb') as f:
                got = f.read()
            with open(f'{self.source}/slow/{i}', 'rb') as f:
                if got != f.read():
                    self.wrong.append(f'{i}: {len(got)} bytes, not those of the source')
        except OSError as error:
            self.wrong.append(f'{i}: {error}')

    def await_all(self):
        for thread in self.threads:
            thread.join()


def main():
    crowd = Crowd(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    crowd.await_all()
    print('\n'.join(crowd.wrong[:10]))
    return bool(crowd.wrong)


if __name__ == '__main__':
    sys.exit(main())
