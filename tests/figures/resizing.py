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


def measure(bench, folder, rate):
    """Of one rate of the source, for each of ARMS: seconds until the mount is live, of the first epoch, and of each
    later one. All three are there at once and take turns, so that other work on the machine meets all alike."""
    size = tree_bytes(folder)
    with Slow(f'{bench.PROGRAMS}/throttle', folder, bench.HERE, rate) as source, \
         Mounted(bench.DEALFS, bench.HERE, source, 'rescan=always') as plain, \
         Mounted(bench.DEALFS, bench.HERE, source, f'rescan=always,resize={SIDE},quality={QUALITY}') as resized:
        places = [source, plain.path, resized.path]
        first = [epoch_of(place) for place in places]
        later = list(zip(*([epoch_of(place) for place in places] for _ in range(bench.runs))))
        read_once(plain, size)
        read_once(resized, 0)
        after = tree_bytes(resized.path)
    return {'bytes': [size, after], 'live': [0, plain.took, resized.took], 'first': first, 'later': later}


PAPER = (('ResNet-50', 25), ('GoogLeNet-BN', 33))  # percent less time per epoch


def pooled(found):
    """Epochs through mounts read nothing of the source: those at all its rates are runs of one measurement."""
    return {arm: [seconds for f in found.values() for seconds in f['later'][arm]] for arm in (1, 2)}


def time_panels(plot, found):
    rates, through = sorted(found), pooled(found)
    ticks, ends = [(rate, rate) for rate in rates], (rates[0] / 1.3, rates[-1] * 1.3)
    all_times = [seconds for f in found.values() for later in f['later'] for seconds in later]
    times = plot.Panel('time of an epoch', 'MB per second of the source', 'seconds', ends,
                       (min(all_times) / 1.3, 1.3 * max(all_times)), ticks, True)
    saved = plot.Panel('time of an epoch / time without dealfs', 'MB per second of the source', 'ratio', ends,
                       (0.05, 3), ticks, True)
    times.medians([(rate, found[rate]['later'][0]) for rate in rates], 0, ARMS[0])
    for arm, seconds in through.items():
        middle = statistics.median(seconds)
        times.line([(x, middle) for x in ends], arm, ARMS[arm])
        times.spread(rates[0] / 1.15 * 1.08 ** arm, seconds, plot.COLOURS[arm])
        saved.medians([(rate * 1.02 ** (2 * arm - 3), [here / without for here, without in zip(
            found[rate]['later'][arm], found[rate]['later'][0])]) for rate in rates], arm, ARMS[arm])
    for colour, (name, percent) in enumerate(PAPER, 4):
        saved.rule(1 - percent / 100, f'the paper, {name}: {1 - percent / 100:.2f}', colour)
    return [times, saved]


def bytes_panel(plot, before, after):
    panel = plot.Panel('bytes of the dataset', '', 'MB', (-0.6, 1.6), (0, before / 1e6 * 1.15),
                       [(0, 'originals'), (1, f'resize={SIDE}')])
    for i, size in enumerate((before, after)):
        panel.median_bar(i, 0.5, [size / 1e6], 2 * i, f'{size / 1e6:.1f} MB')
    return panel


def figure(bench):
    """DIMD: time of an epoch of ImageFolder over a slow source, without dealfs, through a mount, with resize=256"""
    if not os.path.exists(f'{PHOTOGRAPHS}/free_by_Peter_Nerlich.jpg'):
        sys.exit('run: the photographs of lomiri-wallpapers-16.04 are not installed')
    folder, per_class = f'{bench.HERE}/photographs', 12 if bench.quick else 48
    run('make', folder, per_class)
    found = {rate: bench.measured(f'{rate} MB/s', lambda: measure(bench, folder, rate))
             for rate in (RATES[-2:] if bench.quick else RATES)}
    plot, through = bench.plot, pooled(found)
    once = '; '.join(f'{rate} MB/s: {max(f["first"][1] - statistics.median(f["later"][1]), 0):.1f} and '
                     f'{f["live"][2]:.1f} s' for rate, f in found.items())
    bench.write('dimd-resize', [[*time_panels(plot, found), bytes_panel(plot, *found[min(found)]['bytes'])]],
                f'{10 * per_class} photographs of 500 x 375 pixels in 10 classes, batches of {BATCH}, {WORKERS} '
                'workers, RandomResizedCrop(224), and a network of one layer: an epoch is reading and decoding. The '
                'page cache is dropped before each. The source is throttled and not cached. The three ways take turns.',
                f'Epochs after the first. Through mounts they read nothing of the source (checked), so they do not '
                f'depend on its rate. So each of these lines is the median of all {len(through[1])} epochs, and the '
                'bar at its left end is their range. At each rate, the ratios divide epochs that were measured one '
                'after the other.',
                f'Cost, once per mount (how much longer the first epoch is, and the time of resizing): {once}.')


if __name__ == '__main__':
    if sys.argv[1] == 'make':
        make(sys.argv[2], int(sys.argv[3]))
    else:
        train(sys.argv[2], int(sys.argv[3]))
