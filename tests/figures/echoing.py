"""Data echoing (Choi et al.) through a mount: what an upstream step costs by the echo factor (figure 4 of the paper),
and how many fresh samples it takes to learn, by the place of the echo (figure 3)."""
import os
import queue
import random
import shutil
import subprocess
import tempfile
import threading
import time

FACTORS, RATIOS = (1, 1.5, 2, 4, 8), (1, 2, 4, 8)
BATCH, DELAY_MS = 4, 5  # a read of the source takes so long
BUFFER = 32  # samples: far fewer than an epoch, so that what is fresh comes evenly
TARGET, CLASSES, SIDE = 0.9, 8, 32
LEARNED, LEARNED_BUFFER = 16, 128  # a batch of what is learned from, and the buffer that its echoes are shuffled in


def plan(mount, **keys):
    words = ' '.join(f'{key}={value}' for key, value in keys.items())
    with open(f'{mount}/.dealfs/control', 'r+b', buffering=0) as f:
        f.write(f'plan {words}\n'.encode())
        return [int(x) for x in f.read().split()]


class Mounted:
    def __init__(self, dealfs, base, source, options, **environment):
        self.path, self.dealfs = tempfile.mkdtemp(prefix='mount-', dir=base), dealfs
        self.command = [dealfs, 'mount', '-o', f'state={self.path}.state,{options}', source, self.path]
        self.environment = {**os.environ, **environment}

    def __enter__(self):
        subprocess.run(self.command, check=True, env=self.environment, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        with open(f'{self.path}/.dealfs/samples') as f:
            self.samples = f.read().split()
        return self.path

    def __exit__(self, *_):
        subprocess.run([self.dealfs, 'umount', self.path], check=False)


# --- time ---

def epoch_seconds(mount, names, step, **keys):
    """Reading is upstream, in a thread of its own; a step only takes its time."""
    order = plan(mount, epoch=0, ranks=1, batch=BATCH, rank=0, **keys)
    ready = queue.Queue(16)

    def read():
        for at in range(0, len(order), BATCH):
            for i in order[at:at + BATCH]:
                with open(f'{mount}/{names[i]}', 'rb', buffering=0) as f:
                    f.read(1 << 20)
            ready.put(True)
        ready.put(False)
    began = time.monotonic()
    threading.Thread(target=read).start()
    while ready.get():
        time.sleep(step)
    return time.monotonic() - began


def times(dealfs, base, fresh):
    """By R: (e, the time of an upstream step over that of e = 1 with steps that take nothing). Each is read for the
    first time, out of a directory of its own."""
    source = f'{base}/slow'
    parts = ['calibrate'] + [f'{r}-{e}' for r in RATIOS for e in FACTORS]
    shutil.rmtree(source, ignore_errors=True)
    for part in parts:
        os.makedirs(f'{source}/{part}')
        for i in range(fresh):
            with open(f'{source}/{part}/{i:04}', 'wb') as f:
                f.write(os.urandom(4096))
    found = {}
    mounted = Mounted(dealfs, base, source, 'ram=64M,rescan=always', DEALFS_SOURCE_FAULTS=f'delay={DELAY_MS}')
    with mounted as mount:
        def measure(part, step, **keys):
            names = [name for name in mounted.samples if name.startswith(f'{part}/')]
            return epoch_seconds(mount, names, step, under=part, echo_buffer=BUFFER, **keys) / (fresh / BATCH)
        upstream = measure('calibrate', 0)
        for r in RATIOS:
            found[r] = [(e, measure(f'{r}-{e}', upstream / r, echo=e) / upstream) for e in FACTORS]
    shutil.rmtree(source)
    return found


# --- learning ---

def make_pictures(path, per_class):
    """Stripes and rings of eight kinds, in noise, anywhere."""
    import numpy
    from PIL import Image
    rng = numpy.random.default_rng(0)
    shutil.rmtree(path, ignore_errors=True)
    y, x = numpy.mgrid[0:SIDE, 0:SIDE]
    for c in range(CLASSES):
        os.makedirs(f'{path}/class{c}')
        angle, wave = c % 4 * numpy.pi / 4, 5 if c < 4 else 9
        for i in range(per_class):
            along = x * numpy.cos(angle) + y * numpy.sin(angle)
            stripes = numpy.sin(along * 2 * numpy.pi / wave + rng.uniform(0, 6.3))
            noise = rng.normal(0, 1.4, (SIDE, SIDE, 3))
            pixels = (128 + 45 * (stripes[..., None] * rng.uniform(0.5, 1, 3) + noise)).clip(0, 255)
            Image.fromarray(pixels.astype('uint8')).save(f'{path}/class{c}/{i:04}.jpg', quality=95)


def augmented(picture, rng):
    """Elsewhere and lighter or darker. (Mirrored it could be of another class.)"""
    import numpy
    return numpy.roll(picture, (rng.randrange(-8, 9), rng.randrange(-8, 9)), (0, 1)) + rng.gauss(0, 12)


class Augmented:
    """A loader of one epoch's batches, and how many fresh samples are in them."""

    def __init__(self, mount, names, order, rng):
        self.mount, self.names, self.order, self.rng, self.seen = mount, names, order, rng, set()

    def __iter__(self):
        import numpy
        import torch
        for at in range(0, len(self.order), LEARNED):
            part = self.order[at:at + LEARNED]
            self.seen.update(part)
            pictures = [numpy.load(f'{self.mount}/.dealfs/decoded/{self.names[i]}.npy') for i in part]
            yield (as_tensor([augmented(picture.astype('float32'), self.rng) for picture in pictures]),
                   torch.tensor([int(self.names[i].split('/')[0][5:]) for i in part]))


def as_tensor(pictures):
    import numpy
    import torch
    return torch.from_numpy(numpy.stack(pictures).astype('float32') / 128 - 1).permute(0, 3, 1, 2).contiguous()


def fresh_to_target(mount, names, tests, place, seed, most):
    """Fresh samples until the held-out pictures are told apart, or None."""
    import torch
    from dealfs.torch import Echo
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    rng = random.Random(seed)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 12, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(12, 24, 3),
                                  torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
                                  torch.nn.Linear(96, CLASSES))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    held = as_tensor([p for p, _ in tests])
    truth = torch.tensor([c for _, c in tests])
    keys = {} if place in ('no echo', 'after augmentation') else {'echo': 2, 'echo_buffer': LEARNED_BUFFER}
    if place == 'batch':
        keys['echo_at'] = 'batch'
    fresh, steps = 0, 0
    for epoch in range(most):
        loader = Augmented(mount, names, plan(mount, epoch=epoch, seed=100 * seed, samples='train', ranks=1,
                                              batch=LEARNED, rank=0, **keys), rng)
        echo = Echo(loader, 2 if place == 'after augmentation' else 1, LEARNED_BUFFER, seed=seed)
        echo.set_epoch(epoch)
        for pictures, labels in echo if echo.factor > 1 else loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(pictures), labels).backward()
            optimizer.step()
            steps += 1
            if steps % 5 == 0:
                with torch.no_grad():
                    if (network(held).argmax(1) == truth).float().mean() >= TARGET:
                        return fresh + len(loader.seen)
        fresh += len(loader.seen)
    return None


PLACES = ('no echo', 'before augmentation', 'after augmentation', 'batch')


def learning(dealfs, base, per_class, seeds, most):
    """By place: fresh samples to the target for each seed."""
    import numpy
    source, apart = f'{base}/pictures', f'{base}/held-out'
    make_pictures(source, per_class)
    shutil.rmtree(apart, ignore_errors=True)
    tests = []
    found = {place: [] for place in PLACES}
    mounted = Mounted(dealfs, base, source, 'ram=64M,rescan=always')
    with mounted as mount:
        names = [name for name in mounted.samples if int(name[-8:-4]) < per_class * 3 // 4]
        for name in mounted.samples:
            if name not in names:
                tests.append((numpy.load(f'{mount}/.dealfs/decoded/{name}.npy'), int(name.split('/')[0][5:])))
        with open(f'{mount}/.dealfs/control', 'r+b', buffering=0) as f:
            f.write(('samples name=train\n' + '\n'.join(names) + '\n').encode())
            f.read()
        for seed in range(seeds):
            for place in PLACES:
                found[place].append(fresh_to_target(mount, names, tests, place, seed, most))
    shutil.rmtree(source)
    return found


def panels(plot, found, learned):
    """Two of the figure: seconds by e for each R, over e = 1; fresh samples by place, of each seed."""
    most = max(t for line in found.values() for _, t in line)
    cost = plot.Panel('an upstream step, by R = upstream / downstream', 'echo factor e', 'time, over that of e = 1',
                      (0.5, 8.5), (0, 1.1 * most), [(e, f'{e:g}') for e in FACTORS])
    for colour, (r, line) in enumerate(found.items()):
        cost.line(line, colour, f'R = {r}', marks=True)
    most = max(n for runs in learned.values() for n in runs if n)
    need = plot.Panel(f'to {TARGET:.0%} of held-out pictures, e = 2', '', 'fresh samples', (-0.6, len(PLACES) - 0.4),
                      (0, 1.2 * most), [(i, place.replace('augmentation', 'augm.')) for i, place in enumerate(PLACES)])
    for i, place in enumerate(PLACES):
        runs = sorted(n for n in learned[place] if n)
        need.bar(i, 0.6, [0] * i + [runs[len(runs) // 2]])
        need.text(need.px(i), need.py(runs[-1]) - 5, f'{runs[0]} to {runs[-1]}', size=10)
    return [cost, need]


def measure(dealfs, base, quick):
    os.makedirs(base, exist_ok=True)
    return (times(dealfs, base, 120 if quick else 400),
            learning(dealfs, base, 120 if quick else 240, 2 if quick else 5, 40))
