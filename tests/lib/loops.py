"""README's training loop, many times, each on a fresh mount, in all its forms; and whether what is reported of each
epoch is true. Every rank notes which files it skips.

    loops.py DIRECTORY FIRST LAST CONCURRENT

prints a line for each false word, and at the end how many runs there were, how many plain ones were repeated because
not all of their epochs were complete, and how many had a false word."""
import json
import os
import random
import subprocess
import sys

import torch
import torch.distributed as dist
from torchvision.datasets import DatasetFolder

from dealfs.torch import Sampler

FILES, EPOCHS = 240, 3
KINDS = 'plain', 'plain', 'plain', 'early', 'validation', 'jobs', 'careless', 'stranger', 'killed'
CHECKED = [(1, 0, False, 'plain'), (2, 2, True, 'plain'), (4, 1, False, 'plain'), (3, 0, False, 'plain'),
           (1, 4, True, 'plain'), (2, 1, False, 'validation'), (1, 2, False, 'early'), (1, 1, True, 'jobs'),
           (2, 0, False, 'careless'), (1, 2, False, 'careless'), (1, 0, False, 'stranger'), (1, 1, False, 'killed')]


def form_of(number):
    """Ranks, workers, persistent or not, and what happens."""
    if number < len(CHECKED):
        return CHECKED[number]
    draw = random.Random(number)
    return draw.randint(1, 4), draw.randint(0, 4), draw.random() < 0.5, draw.choice(KINDS)


class Files(DatasetFolder):
    """Skips some files, and does not say so."""

    def __init__(self, root, skipped):
        super().__init__(root, loader=self.read, extensions=('.jpg',))
        self.skipped = skipped

    def read(self, path):
        if os.path.basename(path) not in self.skipped:
            with open(path, 'rb') as f:
                f.read()
        return 0


def reports_of(mount):
    with open(mount + '/.dealfs/epochs', encoding='utf-8') as f:
        return json.load(f)


class Run:
    def __init__(self, number, folder, repeated=0):
        self.number, self.folder, self.repeated = number, folder, repeated
        self.mount = f'{folder}/mnt{number}.{repeated}'
        self.ranks, self.workers, self.persistent, self.kind = form_of(number)
        self.draw = random.Random(1000 + number)
        names = sorted(name for _, _, names in os.walk(folder + '/src/train') for name in names)
        self.skipped = set(self.draw.sample(names, 5)) if self.kind in ('careless', 'stranger', 'jobs') else set()

    def train(self, rank, job):
        """One rank. Of two jobs the second one skips files."""
        dist.init_process_group('gloo', f'file://{self.mount}.meet{job}', rank=rank,
                                world_size=self.ranks)
        dataset = Files(self.mount + '/train', self.skipped if job or self.kind != 'jobs' else set())
        batch = 8 + 4 * job
        sampler = Sampler(dataset, batch_size=batch, seed=job)
        loader = torch.utils.data.DataLoader(dataset, batch, sampler=sampler, num_workers=self.workers,
                                             persistent_workers=self.persistent and self.workers > 0)
        for epoch in range(sampler.next_epoch, EPOCHS):
            sampler.set_epoch(epoch)
            for step, _ in enumerate(sampler.over(loader)):
                if step == 3 and rank == 0:
                    self.disturb(epoch)
                if step == 4 and epoch == 1 and self.kind == 'early':
                    break
            if self.kind == 'validation':
                for i in range(0, len(dataset), 3):
                    dataset[i]
        dist.destroy_process_group()

    def disturb(self, epoch):
        if self.kind == 'killed' and epoch == 1:
            with open(self.mount + '/.dealfs/status', encoding='utf-8') as f:
                os.kill(json.load(f)['feed']['feeder'], 9)
        if self.kind == 'stranger':
            subprocess.run(f'cat {self.mount}/train/*/*.jpg >/dev/null', shell=True, check=True)

    def false_words(self, reports):
        """What is said, and not so."""
        if len(reports) != EPOCHS * self.ranks * (2 if self.kind == 'jobs' else 1):
            yield f'{len(reports)} reports'
        for r in reports:
            what = f"{self.kind}, {self.ranks} ranks, {self.workers} workers: {r}"
            if r['read'] + r['unread'] + r['unsure'] != FILES // self.ranks or r['epoch'] >= EPOCHS:
                yield 'counts, or a guess, ' + what
            if r['unread'] and (r['unread'] > len(self.skipped) or not r['ended'] or
                                any(os.path.basename(m['path']) not in self.skipped for m in r['missed'])):
                yield 'unread, ' + what
            asked = 8 * (5 + 2 * self.workers)  # the workers may have read so many when the loader stops
            if self.kind == 'early' and r['epoch'] == 1 and (
                    not r['stopped'] or r['unread'] or (r['coverage'] == 'complete' and asked < r['samples'])):
                yield 'complete, ' + what
        for epoch in range(EPOCHS if self.skipped and self.kind != 'jobs' else 0):
            if all(r['coverage'] == 'complete' for r in reports if r['epoch'] == epoch):
                yield f'{self.kind}: epoch {epoch} complete, and {len(self.skipped)} files were skipped'

    def judge(self):
        reports = reports_of(self.mount)
        false = list(self.false_words(reports))
        said = subprocess.run(['dealfs', 'status', '--epoch', self.mount], stdout=subprocess.PIPE, check=False)
        last = [r for r in reports if r['asked'] == max(r['asked'] for r in reports)]
        if said.returncode == 3 and not self.skipped or f'epoch {last[0]["epoch"]}'.encode() not in said.stdout:
            false.append(f'status {said.returncode}: {said.stdout}')
        if self.kind == 'plain' and any(r['coverage'] != 'complete' for r in reports):
            print('# not complete:', [(r['epoch'], r['rank'], r) for r in reports if r['coverage'] != 'complete'])
        return false, all(r['coverage'] == 'complete' for r in reports)

    def run(self):
        """0: right; 1: a false word; 2: right, and all complete."""
        os.mkdir(self.mount)
        subprocess.run(['dealfs', 'mount', '-o', f'ram=8M,state={self.mount}.state', self.folder + '/src', self.mount],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            ranks = [fork(lambda rank=rank, job=job: self.train(rank, job)) for rank in range(self.ranks)
                     for job in range(2 if self.kind == 'jobs' else 1)]
            failed = [pid for pid in ranks if os.waitpid(pid, 0)[1]]
            false, complete = self.judge()
            for word in false + [f'{len(failed)} ranks failed'] * bool(failed):
                print(f'# run {self.number}: {word}', flush=True)
            return 1 if false or failed else 2 if complete else 0
        finally:
            subprocess.run(['dealfs', 'umount', self.mount], check=True)


def fork(body):
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        status = body() or 0
    except BaseException as error:  # of any kind: this process is none of the caller's
        print(f'# {type(error).__name__}: {error}', flush=True)
    finally:
        sys.stdout.flush()
        os._exit(status)


def main():
    folder, (first, last, concurrent) = sys.argv[1], map(int, sys.argv[2:5])
    torch.set_num_threads(1)
    running, again, false = {}, 0, 0
    for number in range(first, last + 1):
        while len(running) == concurrent or number == last and running:
            pid, status = os.wait()
            run, result = running.pop(pid), os.waitstatus_to_exitcode(status)
            false += result not in (0, 2)
            if run.kind == 'plain' and result == 0:
                again += 1
                run = Run(run.number, folder, run.repeated + 1)
                running[fork(run.run)] = run
        if number < last:
            run = Run(number, folder)
            running[fork(run.run)] = run
    print(last - first, again, false)


if __name__ == '__main__':
    main()
