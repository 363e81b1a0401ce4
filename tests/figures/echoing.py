"""Data echoing (Choi et al.) through a mount: how many fresh samples it takes to learn, by the place of the echo, its
factor and its buffer (figures 3, 5 and 7 of the paper), and the time that this takes, by the factor and by R, the time
of reading divided by that of a step (figure 4)."""
import os
import queue
import random
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

FACTORS, RATIOS = (1, 2, 4, 8, 16), (1, 2, 4, 8)
BATCH, DELAY_MS = 4, 10  # a read of the source takes so long
BUFFER = 32  # samples: far fewer than an epoch, so that what is fresh comes evenly
TARGET, CLASSES, SIDE = 0.9, 8, 32
LEARNED, LEARNED_BUFFER = 16, 128  # a batch of what is learned from, and the buffer that its echoes are shuffled in
BUFFERS, BUFFERED = (16, 128, 1024), 4  # buffers compared, and the factor with which
MOST = 40  # epochs


def plan(mount, **keys):
    words = ' '.join(f'{key}={value}' for key, value in keys.items())
    with open(f'{mount}/.dealfs/control', 'r+b', buffering=0) as f:
        f.write(f'plan {words}\n'.encode())
        return [int(x) for x in f.read().split()]


class Mounted:
    def __init__(self, bench, source, options, **environment):
        self.path, self.dealfs = tempfile.mkdtemp(prefix='mount-', dir=bench.HERE), bench.DEALFS
        self.command = [bench.DEALFS, 'mount', '-o', f'state={self.path}.state,{options}', source, self.path]
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


def times(bench, fresh):
    """By R and e: seconds of an upstream step, divided by one with e = 1 and steps that take nothing. Each is read for
    the first time, from a directory of its own."""
    source, found = f'{bench.HERE}/slow', {}
    parts = ['calibrate'] + [f'{r}-{e}' for r in RATIOS for e in FACTORS]
    shutil.rmtree(source, ignore_errors=True)
    for part in parts:
        os.makedirs(f'{source}/{part}')
        for i in range(fresh):
            with open(f'{source}/{part}/{i:04}', 'wb') as f:
                f.write(os.urandom(4096))
    mounted = Mounted(bench, source, 'ram=64M,rescan=always', DEALFS_SOURCE_FAULTS=f'delay={DELAY_MS}')
    with mounted as mount:
        def measure(part, step, **keys):
            names = [name for name in mounted.samples if name.startswith(f'{part}/')]
            return epoch_seconds(mount, names, step, under=part, echo_buffer=BUFFER, **keys) / (fresh / BATCH)
        upstream = measure('calibrate', 0)
        for r in RATIOS:
            for e in FACTORS:
                found[f'{r}-{e}'] = measure(f'{r}-{e}', upstream / r, echo=e) / upstream
    shutil.rmtree(source)
    return found


# --- learning ---

def make_pictures(path, per_class, side=SIDE, strength=1.4):
    """Stripes of eight kinds, in noise of this strength, anywhere."""
    import numpy
    from PIL import Image
    rng = numpy.random.default_rng(0)
    shutil.rmtree(path, ignore_errors=True)
    y, x = numpy.mgrid[0:side, 0:side]
    for c in range(CLASSES):
        os.makedirs(f'{path}/class{c}')
        angle, wave = c % 4 * numpy.pi / 4, 5 if c < 4 else 9
        for i in range(per_class):
            along = x * numpy.cos(angle) + y * numpy.sin(angle)
            stripes = numpy.sin(along * 2 * numpy.pi / wave + rng.uniform(0, 6.3))
            noise = rng.normal(0, strength, (side, side, 3))
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


def make_network(seed):
    import torch
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    return torch.nn.Sequential(torch.nn.Conv2d(3, 12, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(12, 24, 3),
                               torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
                               torch.nn.Linear(96, CLASSES))


def fresh_to_target(mount, names, tests, place, factor, buffer, seed):
    """Fresh samples until the held-out pictures are told apart, or in MOST epochs."""
    import torch
    from dealfs.torch import Echo
    rng, network = random.Random(seed), make_network(seed)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    held, truth = as_tensor([p for p, _ in tests]), torch.tensor([c for _, c in tests])
    keys = {} if place == 'after augmentation' else {
        'echo': factor, 'echo_buffer': buffer, 'echo_at': 'batch' if place == 'batch' else 'example'}
    fresh, steps = 0, 0
    for epoch in range(MOST):
        loader = Augmented(mount, names, plan(mount, epoch=epoch, seed=100 * seed, samples='train', ranks=1,
                                              batch=LEARNED, rank=0, **keys), rng)
        echo = Echo(loader, factor if place == 'after augmentation' else 1, buffer, seed=seed)
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
    return fresh


PLACES = ('before augmentation', 'after augmentation', 'batch')
NONE = PLACES[0], 1, LEARNED_BUFFER  # the same as no echo


def trials():
    """Each as (place, factor, buffer)."""
    yield NONE
    for place in PLACES:
        for factor in FACTORS[1:]:
            yield place, factor, LEARNED_BUFFER
    for place in PLACES:
        for buffer in BUFFERS:
            if buffer != LEARNED_BUFFER:
                yield place, BUFFERED, buffer


def learning(bench, per_class):
    """By trial: fresh samples to the target for each seed."""
    keys = {(trial, seed): f'{trial} seed {seed}' for trial in trials() for seed in range(bench.runs)}
    if bench.has(keys.values()):
        return {trial: [bench.measured(keys[trial, seed], None) for seed in range(bench.runs)] for trial in trials()}
    import numpy
    source, tests, found = f'{bench.HERE}/pictures', [], {}
    make_pictures(source, per_class)
    mounted = Mounted(bench, source, 'ram=64M,rescan=always')
    with mounted as mount:
        names = [name for name in mounted.samples if int(name[-8:-4]) < per_class * 3 // 4]
        for name in mounted.samples:
            if name not in names:
                tests.append((numpy.load(f'{mount}/.dealfs/decoded/{name}.npy'), int(name.split('/')[0][5:])))
        with open(f'{mount}/.dealfs/control', 'r+b', buffering=0) as f:
            f.write(('samples name=train\n' + '\n'.join(names) + '\n').encode())
            f.read()
        for seed in range(bench.runs):
            for trial in trials():
                found.setdefault(trial, []).append(bench.measured(
                    keys[trial, seed], lambda: fresh_to_target(mount, names, tests, *trial, seed)))
    shutil.rmtree(source)
    return found


# --- the figure ---

E_TICKS = [(e, e) for e in FACTORS]


def fresh_panel(plot, learned):
    most = max(n for runs in learned.values() for n in runs)
    panel = plot.Panel(f'fresh samples to an accuracy of {TARGET:.0%}', 'echo factor e', 'fresh samples', (0.8, 20),
                       (min(n for runs in learned.values() for n in runs) / 2, 1.3 * most), E_TICKS, True)
    for colour, place in enumerate(PLACES):
        panel.medians([(e * 1.04 ** (colour - 1), reached(learned, (place, e, LEARNED_BUFFER))) for e in FACTORS],
                      colour, place)
    base = statistics.median(learned[NONE])
    panel.line([(e, base / e) for e in FACTORS if base / e > panel.y0], 5, 'if repeated samples were fresh',
               dashed=True)
    return panel


def reached(learned, trial):
    """Without echo all places are the same."""
    place, factor, buffer = trial
    return learned[trial if factor > 1 else NONE]


def buffer_panel(plot, learned):
    values = [n for place in PLACES for buffer in BUFFERS for n in learned[place, BUFFERED, buffer]] + learned[NONE]
    panel = plot.Panel(f'fresh samples with e = {BUFFERED}, by shuffle buffer', 'buffer, samples', 'fresh samples',
                       (BUFFERS[0] * 0.7, BUFFERS[-1] * 1.4), (min(values) / 1.3, 1.3 * max(values)),
                       [(b, b) for b in BUFFERS], True)
    for colour, place in enumerate(PLACES):
        panel.medians([(b * 1.04 ** (colour - 1), learned[place, BUFFERED, b]) for b in BUFFERS], colour, place)
    panel.rule(statistics.median(learned[NONE]), 'no echo')
    return panel


def time_panel(plot, learned, took):
    """Figure 4 of the paper: fresh samples of a seed times the measured time of an upstream step of a run."""
    lines = {}
    for r in RATIOS:
        base = statistics.median(learned[NONE]) * statistics.median(run[f'{r}-1'] for run in took)
        lines[r] = [(e, [fresh * run[f'{r}-{e}'] / base for fresh, run in
                         zip(reached(learned, (PLACES[0], e, LEARNED_BUFFER)), took)]) for e in FACTORS]
    values = [v for line in lines.values() for _, vs in line for v in vs]
    panel = plot.Panel('time to the target, echo before augmentation', 'echo factor e', 'time / time without echo',
                       (0.8, 20), (min(values) / 1.2, max(values) * 1.2), E_TICKS, True)
    for colour, (r, line) in enumerate(lines.items()):
        panel.medians([(e * 1.05 ** (colour - 1.5), vs) for e, vs in line], colour, f'R = {r}')
    panel.rule(1, 'no echo')
    return panel


def figure(bench):
    """data echoing: fresh samples to an accuracy by place, factor and buffer, and the time by R"""
    learned = learning(bench, 120 if bench.quick else 240)
    took = [bench.measured(f'times {i}', lambda: times(bench, 40 if bench.quick else 100)) for i in range(bench.runs)]
    for trial, runs in learned.items():
        bench.say(*trial, runs)
    plot = bench.plot
    bench.write('echo', [[fresh_panel(plot, learned), buffer_panel(plot, learned), time_panel(plot, learned, took)]],
                f'Left and middle: a small convolutional network learns eight classes of stripes in noise through a '
                f'mount, {len(next(iter(learned.values())))} seeds, batches of {LEARNED}. Echoes are shuffled in a '
                f'buffer (left: {LEARNED_BUFFER} samples; at "batch" whole batches with as many samples in total). The '
                'values are counts, so they do not depend on the load of the machine.',
                'Right: those counts, multiplied by the measured time of reading and training, and divided by the time '
                f'without echo. R is the time to read a batch divided by that of a step: reading takes {DELAY_MS} ms '
                'per sample (simulated), and a step sleeps.')
