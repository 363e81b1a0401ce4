#!/bin/bash
# The Python package on a real mount: what it asks, what it says when that is refused or a server dies; the sampler in
# three processes that talk over gloo, with workers, ended and gone on with; and that pip installs it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
python=/usr/bin/python3
$python -c 'import torch, torchvision, numpy' 2>/dev/null ||
    plan_skip 'python3-torch, python3-torchvision or python3-numpy is not installed'
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=lo
src=$tmp/src mnt=$tmp/mnt package=$top_srcdir/etc/python

# Images by their names only, each with its name in it.
cat >"$tmp/make.py" <<'EOF'
import os, sys
os.chdir(sys.argv[1])
for part, count in (('train', 97), ('val', 5)):
    for c in range(3):
        os.makedirs(f'{part}/class{c}')
    for i in range(count):
        with open(f'{part}/class{i % 3}/{i:03d}.jpg', 'w') as f:
            f.write(f'{i:03d}')
with open(b'val/class1/a b\xff\\n\\\\c\n\rd%,\t.jpg', 'w') as f:
    f.write('odd')
EOF
mkdir "$src"
python3 "$tmp/make.py" "$src"
ok 'mount' mount_up -o ram=8M "$src" "$mnt"

# --- what a mount is asked ---
cat >"$tmp/ask.py" <<'EOF'
import errno, os, signal, subprocess, sys
import numpy
import dealfs
import dealfs.mount
from tap import done_testing, equal, ok, wait_for
path, src = sys.argv[1:]
mount = dealfs.Mount(path)

def command(*words):
    return subprocess.run(['dealfs', *words], check=True, stdout=subprocess.PIPE).stdout

def refused(what, number, reason, ask):
    try:
        ask()
    except dealfs.Refused as error:
        ok(error.errno == number and reason in error.reason and path in str(error), f'{what}: {error}')
    else:
        ok(False, f'{what}: not refused')

equal(mount.status()['catalog']['files'], 103, 'status')
names = mount.samples()
equal(len(names), 103, 'samples')
ok(all(os.path.isfile(f'{src}/{name}') for name in names), 'by their true names')
equal(len(mount.samples('imagefolder')), 103, 'another list')

one = mount.plan(epoch=3, ranks=4, batch=8, rank=2)
equal((one.dtype, one.tolist()), (numpy.dtype('<u4'), [int(i) for i in command(
    'plan', path, 'epoch=3', 'ranks=4', 'batch=8', 'rank=2').split()]), 'a plan of one rank')
every = mount.plan(epoch=3, ranks=4, batch=8)
equal((len(every), every[2].tolist()), (4, one.tolist()), 'of all ranks')
equal([len(x) for x in mount.plan(epoch=3, ranks=4, batch=8, tail='short')], [26, 26, 26, 25], 'of several lengths')
equal(mount.plan(epoch=3, ranks=4, batch=8, rank=1, skip=103, tail='drop').tolist(), [], 'an empty one')
order = numpy.arange(103)[::-1]
equal(mount.plan(order, epoch=0, ranks=1, batch=8, rank=0).tolist(), order.tolist(), "the caller's order")
equal(mount.plan([5, 5, 7], epoch=0, ranks=1, batch=8, rank=0, distinct=False).tolist(), [5, 5, 7], 'as a list')
equal(mount.plan('natural', epoch=0, ranks=1, batch=8, rank=0).tolist(), list(range(103)), 'that of the list')
equal(mount.plan(epoch=0, ranks=1, batch=8, rank=0, under='train/class1', match='*[05].jpg', order='natural').size,
      len([i for i in range(97) if i % 3 == 1 and i % 5 == 0]), 'of some samples')
summary = mount.summary(epoch=3, ranks=4, batch=8)
equal((summary['samples'], len(summary['digest'])), (104, 32), 'a summary')
equal(mount.summary(epoch=3, ranks=4, batch=8, feed=True)['digest'], summary['digest'], 'the same where it is fed')
for bad in [1.5], [-1], [1 << 32], ['x']:
    try:
        mount.plan(bad, epoch=0, ranks=1, batch=8, rank=0)
        ok(False, f'{bad} is no order')
    except ValueError:
        ok(True, f'{bad} is no order')
one[0] = one[0]
equal(mount.plan([], epoch=0, ranks=1, batch=8, rank=0, distinct=False).tolist(), [], 'an empty one is')

odd = [name for name in names if name.endswith('%,\t.jpg')]
found = mount.where([f'{path}/{names[7]}', 'nowhere', *odd])
owner = [0 if place.tier else None for place in found]  # the feeder may have read one of them by now
equal(found, [(7, owner[0], found[0].tier, f'{path}/{names[7]}'), (None, None, None, 'nowhere'),
              (names.index(odd[0]), owner[2], found[2].tier, odd[0])], 'where')
equal(mount.where([]), [], 'where of nothing')

refused('a count', errno.EINVAL, 'the list has 103 samples', lambda: mount.plan(epoch=0, ranks=1, batch=1, count=5))
refused('a range', errno.ERANGE, 'past the end', lambda: mount.plan(epoch=0, ranks=1, batch=1, rank=0, skip=200))
refused('a layout', errno.ESTALE, 'not known', lambda: mount.plan(epoch=0, ranks=1, batch=1, layout='1' * 32))
refused('an order', errno.EINVAL, '', lambda: mount.plan([1, 1], epoch=0, ranks=1, batch=1, rank=0))
refused('a key', errno.EINVAL, 'unknown key `frob`', lambda: mount.plan(epoch=0, ranks=1, batch=1, frob='a b'))
refused('a verb', errno.EINVAL, 'frobnicate', lambda: mount.ask('frobnicate'))
try:
    mount.samples('none')
    ok(False, 'a list that is not there')
except FileNotFoundError as error:
    ok('none' in str(error), f'a list that is not there: {error}')
found, inside = dealfs.Mount.around(f'{path}/train/class0/000.jpg')
equal((found.path, inside), (path, 'train/class0/000.jpg'), 'the mount around a path')
equal(dealfs.Mount.around(path)[1], '', 'of its root')

class Deadly:
    """The control file, whose server dies before it is read."""
    times = 1
    def __init__(self, *words, **keys):
        self.file = real_open(*words, **keys)
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.file.close()
    def write(self, view):
        return self.file.write(view)
    def read(self):
        if Deadly.times:
            Deadly.times -= 1
            server = mount.status()['pids']['server']
            os.kill(server, signal.SIGKILL)
            wait_for(lambda: mount.status()['pids']['server'] != server)
        return self.file.read()
real_open = open
dealfs.mount.open = lambda name, *rest, **keys: (
    Deadly if name.endswith('/control') else real_open)(name, *rest, **keys)
equal(mount.plan(epoch=3, ranks=4, batch=8, rank=2).tolist(), one.tolist(), 'a server that dies is not seen')
equal((Deadly.times, mount.status()['restarts']['count']), (0, 1), 'and one did')
refused('the reason is there after that', errno.EINVAL, 'count', lambda: mount.plan(epoch=0, ranks=1, batch=1, count=5))
sys.exit(done_testing())
EOF
run() { PYTHONPATH=$package:$top_srcdir/tests/lib $python "$@"; }
ok 'what it asks, and what it is told' run "$tmp/ask.py" "$mnt" "$src"
diag "$(grep -v '^ok' "$tmp/.output")"

# --- the sampler ---
cat >"$tmp/train.py" <<'EOF'
import os, sys
import torch.distributed as dist
from torch.utils.data import BatchSampler, DataLoader
from torchvision.datasets import ImageFolder
from dealfs.torch import Echo, Sampler, ShardedAgain
from restoring import StatefulDataLoader
rank, meet, mount = int(sys.argv[1]), sys.argv[2], sys.argv[3]
early = Sampler(range(103), batch_size=4, mount=mount)
dist.init_process_group('gloo', init_method=meet, rank=rank, world_size=3)
try:
    list(early)
    raise AssertionError('three ranks with the whole list')
except RuntimeError as error:
    assert 'this sampler was made before init_process_group' in str(error), error
two = dist.new_group([0, 1])

def read(path):
    with open(path) as f:
        return int(f.read())
dataset = ImageFolder(f'{mount}/train', loader=read)

def everybody(mine):
    values = [None] * 3
    dist.all_gather_object(values, mine)
    return values

def loader_of(sampler, kind=DataLoader, **keys):
    return kind(dataset, 4, sampler=sampler, num_workers=2, **keys)

def read_some(sampler, loader, steps=1000):
    """Samples of a pass, which is ended after some steps."""
    seen = []
    for done, (numbers, labels) in enumerate(sampler.over(loader), 1):
        assert (numbers % 3 == labels).all(), 'other bytes'
        seen += numbers.tolist()
        if done == steps:
            break
    return seen

# --- an epoch of two ranks, which is ended in the middle; all three go on ---
seen, state = [], None
if rank < 2:
    sampler = Sampler(dataset, batch_size=4, group=two, seed=3)
    assert sampler.mount.path == os.path.realpath(mount) and sampler.keys['under'] == 'train', sampler.keys
    loader = loader_of(sampler, persistent_workers=True)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        seen = read_some(sampler, loader, 1000 if epoch == 0 else 5)
        if epoch == 0:
            whole = seen
            assert len(whole) == 49
    state = sampler.state_dict()
    assert state['consumed'] == 40 and sampler._pass.at > 20, state
wholes = everybody(whole if rank < 2 else [])
assert sorted(sum(wholes, []))[:1] == [0] and set(sum(wholes, [])) == set(range(97)), 'an epoch'
before = sum(everybody(seen), [])
state = everybody(state)[0]
sampler = Sampler(dataset, batch_size=4, seed=3)
sampler.load_state_dict(state)
assert sampler.next_epoch == 1
sampler.set_epoch(1)
rest = sum(everybody(read_some(sampler, loader_of(sampler))), [])
assert sorted(before + rest) == list(range(97)), 'each sample once'
sampler.set_epoch(2)
assert set(sum(everybody(read_some(sampler, loader_of(sampler))), [])) == set(range(97)), 'and on'

# --- the same through a loader that keeps the state itself ---
sampler = Sampler(dataset, batch_size=4)
sampler.set_epoch(5)
loader = loader_of(sampler, StatefulDataLoader)
before = sum(everybody(read_some(sampler, loader, 3)), [])
state = everybody(loader.state_dict())[0]
sampler = Sampler(dataset, batch_size=4)
loader = loader_of(sampler, StatefulDataLoader)
loader.load_state_dict(state)
rest = sum(everybody(read_some(sampler, loader)), [])
assert (len(before), len(rest)) == (36, 63) and set(before + rest) == set(range(97)), 'stateful'  # two fill up

# --- a loader that is sharded again ---
class EveryRth(BatchSampler):
    num_processes = 3  # as that of Accelerate
    def __iter__(self):
        return (batch for i, batch in enumerate(super().__iter__()) if i % 3 == rank)
    def __len__(self):
        return super().__len__() // 3
sampler.set_epoch(6)
try:
    read_some(sampler, DataLoader(dataset, batch_sampler=EveryRth(sampler, 4, False), num_workers=1))
    raise AssertionError('not noticed')
except ShardedAgain as error:
    assert 'one of 3 parts' in str(error), error

# --- each sample twice, after it was read ---
sampler.set_epoch(7)
twice = sum(everybody(read_some(sampler, Echo(loader_of(sampler), 2, buffer=16))), [])
assert len(twice) == 198 and all(twice.count(i) >= 2 for i in range(97)), 'echo'
dist.destroy_process_group()
EOF
export PYTHONPATH=$package:$top_srcdir/tests/etc/python
misplaced=$(value "$mnt" plans.misplaced)
ranks=()
for rank in 0 1 2; do
    $python "$tmp/train.py" $rank "file://$tmp/meet" "$mnt" >"$tmp/rank$rank.log" 2>&1 &
    ranks+=($!)
    tap_pids+=($!)
done
for rank in 0 1 2; do
    ok "three ranks: number $rank" wait "${ranks[rank]}" || diag "$(tail -n 8 "$tmp/rank$rank.log")"
done
unset PYTHONPATH
is 'nobody is misplaced' "$(value "$mnt" plans.misplaced)" "$misplaced"
like 'their lists may be read ahead' "$(value "$mnt" feed.plans)" '"epoch": 7,'

# --- what its README says ---
awk '/^```python/ { within = 1; next } /^```/ && within { within = 0; print "# end" } within' "$package/README.md" |
    sed "s|/mnt/imagenet|$mnt|; s|^\( *\)\.\.\.$|\1seen += images.tolist()|" >"$tmp/readme"
cat >"$tmp/readme.py" <<'EOF'
import functools, sys
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from dealfs.torch import Echo
def read(path):
    with open(path) as f:
        return int(f.read())
ImageFolder = functools.partial(ImageFolder, loader=read)
transform, epochs, seen, permutation, lengths = None, 2, [], list(range(102, -1, -1)), list(range(103))
with open(sys.argv[1]) as f:
    blocks = f.read().split('# end\n')
for block in blocks[:3]:
    exec(block + '    pass' * (block is blocks[2]))
assert list(mount.plan(epoch=0, ranks=2, batch=4, order=permutation, rank=1)) != [], 'an array'
assert sorted(seen) == sorted(2 * list(range(97))), seen
EOF
ok 'the blocks of its README do what they say' run "$tmp/readme.py" "$tmp/readme"

# --- pip ---
cp -r "$package" "$tmp/package"
ok 'pip installs it, without a network' env HOME="$tmp" PIP_NO_INDEX=1 PIP_ROOT_USER_ACTION=ignore \
    $python -m pip install --quiet --no-cache-dir --disable-pip-version-check --no-build-isolation \
    --no-deps --target "$tmp/target" "$tmp/package"
is 'all of its files' "$(cd "$tmp/target/dealfs" && find . -name '*.py' | sort)" \
    "$(cd "$package/dealfs" && find . -name '*.py' | sort)"
ok 'it works' env PYTHONPATH="$tmp/target" $python -c 'import dealfs, sys; dealfs.Mount(sys.argv[1]).status()' "$mnt"
is 'under its version' "$(PYTHONPATH=$tmp/target $python -c '
import importlib.metadata, dealfs
print(importlib.metadata.version("dealfs") == dealfs.__version__, dealfs.__file__)')" \
    "True $tmp/target/dealfs/__init__.py"

# As the README of the package has it. Debian's Python refuses to install outside of a virtual environment.
pip=(env HOME="$tmp" PIP_NO_INDEX=1 PIP_NO_BUILD_ISOLATION=0 PIP_NO_CACHE_DIR=1
    PIP_DISABLE_PIP_VERSION_CHECK=1)
ok 'a wheel' "${pip[@]}" $python -m pip wheel --quiet --no-deps --wheel-dir "$tmp/wheels" "$tmp/package"
like 'for any machine' "$(ls "$tmp/wheels")" '^dealfs-[0-9.]+-py3-none-any.whl$'
ok 'a virtual environment' $python -m venv --system-site-packages --without-pip "$tmp/venv"
ok 'pip installs the wheel there' "${pip[@]}" "$tmp/venv/bin/python" -m pip install --quiet "$tmp"/wheels/*.whl
is 'and Python finds it there' \
    "$(cd / && "$tmp/venv/bin/python" -c 'import dealfs, dealfs.mount; print(dealfs.__file__)')" \
    "$(echo "$tmp"/venv/lib/python3*/site-packages)/dealfs/__init__.py"
ok 'it works' "$tmp/venv/bin/python" -c 'import dealfs, sys; dealfs.Mount(sys.argv[1]).status()' "$mnt"

ok 'unmount' dealfs umount "$mnt"
fails 'a mount that is gone is named' run -c 'import dealfs, sys; dealfs.Mount(sys.argv[1])' "$mnt"
like 'as such' "$(tail -n 1 "$tmp/.output")" "NotMounted.*no dealfs mount.*$mnt"
nothing_left
done_testing
