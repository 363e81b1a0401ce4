"""Images that were made smaller once, and are kept in memory (DIMD; figures 10 and 11 of the paper): the time of an
epoch of ImageFolder and DataLoader over a slow source, without dealfs, through a mount, and through one with
`resize=256`.

    resizing.py make FOLDER PER-CLASS                the dataset: a folder for each of 10 classes, cut from photographs
    resizing.py train FOLDER EPOCHS                  seconds of each epoch, a line each

As two processes each: torch is not started in a process that forks."""
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RATES = (4, 8, 16, 32)  # MB a second, of the source
CLASSES, SIDE, QUALITY, BATCH, WORKERS = 10, 256, 90, 32, 2
PHOTOGRAPHS = '/usr/share/backgrounds'
PYTHON = '/usr/bin/python3'


# --- the dataset, and training ---

def make(folder, per_class):
    """Of the size that most of ImageNet has: 500 pixels, about 100 KB."""
    from PIL import Image
    rng = random.Random(1)
    names = sorted(n for n in os.listdir(PHOTOGRAPHS) if '_by_' in n and n.endswith('.jpg'))[:CLASSES]
    for c, name in enumerate(names):
        with Image.open(f'{PHOTOGRAPHS}/{name}') as opened:
            photograph = opened.convert('RGB')
        os.makedirs(f'{folder}/{c}')
        for i in range(per_class):
            width = rng.randrange(min(700, photograph.width // 2), photograph.width)
            height = min(width * 3 // 4, photograph.height)
            left, top = rng.randrange(photograph.width - width + 1), rng.randrange(photograph.height - height + 1)
            part = photograph.crop((left, top, left + width, top + height)).resize((500, 375), Image.BICUBIC)
            part.save(f'{folder}/{c}/{i:04}.jpg', quality=94)


def train(folder, epochs):
    import torch
    from torch import nn
    from torchvision import transforms
    from torchvision.datasets import ImageFolder
    torch.manual_seed(1)
    torch.set_num_threads(1)
    data = ImageFolder(folder, transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                                                   transforms.ToTensor()]))
    network = nn.Sequential(nn.AvgPool2d(16), nn.Flatten(), nn.Linear(3 * 14 * 14, CLASSES))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=WORKERS)
    for _ in range(epochs):
        drop_caches()
        began, seen = time.monotonic(), 0
        for images, classes in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images), classes).backward()
            optimizer.step()
            seen += len(classes)
        assert seen == len(data)
        print(time.monotonic() - began, flush=True)


def drop_caches():
    """So that what is measured is the mount, and not the kernel's memory of it."""
    os.sync()
    try:
        with open('/proc/sys/vm/drop_caches', 'w') as f:
            f.write('1')
    except OSError:
        pass


# --- the measurement ---

class Slow:
    """The dataset behind a bound of so many MB a second."""

    def __init__(self, program, folder, base, rate):
        self.path = tempfile.mkdtemp(prefix='slow-', dir=base)
        self.command = [program, folder, self.path, str(rate * 1000000)]

    def __enter__(self):
        self.process = subprocess.Popen(self.command)
        while not os.path.ismount(self.path):
            assert self.process.poll() is None, 'throttle ended'
            time.sleep(0.01)
        return self.path

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


class Mounted:
    def __init__(self, dealfs, base, source, options):
        self.dealfs, self.path = dealfs, tempfile.mkdtemp(prefix='mount-', dir=base)
        self.command = [dealfs, 'mount', '-o', f'state={self.path}.state,ram=256M,{options}', source, self.path]

    def __enter__(self):
        began = time.monotonic()
        subprocess.run(self.command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.took = time.monotonic() - began
        return self

    def __exit__(self, *_):
        subprocess.run([self.dealfs, 'umount', self.path], check=False)
        shutil.rmtree(f'{self.path}.state', ignore_errors=True)


def run(*words):
    return subprocess.run([PYTHON, os.path.abspath(__file__), *map(str, words)], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.split()


def epoch_of(folder):
    return float(run('train', folder, 1)[0])


def tree_bytes(folder):
    return sum(os.path.getsize(os.path.join(at, name)) for at, folders, names in os.walk(folder) for name in names)


ARMS = ('without dealfs', 'through a mount', f'with resize={SIDE}')


def read_once(mount, size):
    """Later epochs have read nothing of the source."""
    with open(f'{mount.path}/.dealfs/status') as f:
        assert json.load(f)['source']['bytes'] <= size


def measure(dealfs, throttle, base, quick, say):
    """Bytes before and after; and by rate, for each of ARMS: (seconds until the mount is live, of the first epoch, of
    a later one). All three are there at once and take turns, so that what else the machine does meets all alike; of
    each the median of as many epochs."""
    folder, turns = f'{base}/photographs', 1 if quick else 3
    run('make', folder, 12 if quick else 60)
    before, after, found = tree_bytes(folder), 0, {}
    for rate in RATES[-2:] if quick else RATES:
        with Slow(throttle, folder, base, rate) as source, \
             Mounted(dealfs, base, source, 'rescan=always') as plain, \
             Mounted(dealfs, base, source, f'rescan=always,resize={SIDE},quality={QUALITY}') as resized:
            places = [source, plain.path, resized.path]
            first = [epoch_of(place) for place in places]
            later = list(zip(*([epoch_of(place) for place in places] for _ in range(turns))))
            read_once(plain, before)
            read_once(resized, 0)
            after = tree_bytes(resized.path)
        found[rate] = [(took, one, statistics.median(more))
                       for took, one, more in zip((0, plain.took, resized.took), first, later)]
        say(rate, 'MB/s:', *(f'{name} {took:.1f} + {one:.1f}, then {", ".join(f"{x:.2f}" for x in more)} s;'
                             for name, (took, one, _), more in zip(ARMS, found[rate], later)))
    return before, after, found


PAPER = (('ResNet-50', 25), ('GoogLeNet-BN', 33))  # percent less time an epoch


def panels(plot, before, after, found):
    rates, most = sorted(found), max(max(arm[1:]) for arms in found.values() for arm in arms)
    ticks = [(rate, rate) for rate in rates]
    times = plot.Panel('time of an epoch', 'MB a second of the source', 'seconds', (0, rates[-1] * 1.1),
                       (0, 1.35 * most), ticks)
    gains = {rate: [100 * (1 - arm[2] / arms[0][2]) for arm in arms] for rate, arms in found.items()}
    least = 20 * (min(0, *map(min, gains.values())) // 20)
    saved = plot.Panel('time saved', 'MB a second of the source', 'percent of an epoch without dealfs',
                       (0, rates[-1] * 1.1), (least, 135), ticks)
    for colour, name in enumerate(ARMS):
        times.line([(rate, found[rate][colour][2]) for rate in rates], colour, name, marks=True)
        if colour:
            saved.line([(rate, gains[rate][colour]) for rate in rates], colour, name, marks=True)
    for name, percent in PAPER:
        saved.rule(percent, '#505050', f'the paper: {percent} % ({name})')
    bytes_panel = plot.Panel('bytes of the dataset', '', 'MB', (-0.6, 1.6), (0, before / 1e6 * 1.35),
                             [(0, 'originals'), (1, f'resize={SIDE}')])
    for i, size in enumerate((before, after)):
        bytes_panel.bar(i, 0.5, [0] * (2 * i) + [size / 1e6])
        bytes_panel.text(bytes_panel.px(i), bytes_panel.py(size / 1e6) - 5, f'{size / 1e6:.1f} MB')
    return [times, saved, bytes_panel]


if __name__ == '__main__':
    if sys.argv[1] == 'make':
        make(sys.argv[2], int(sys.argv[3]))
    else:
        train(sys.argv[2], int(sys.argv[3]))
