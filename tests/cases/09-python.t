#!/bin/bash
# Real loaders: PyTorch's ImageFolder and DataLoader, numpy.memmap, h5py and tarfile see what they see in the source.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

python=/usr/bin/python3
$python -c 'import torch, torchvision, numpy' 2>/dev/null ||
    plan_skip 'python3-torch, python3-torchvision or python3-numpy is not installed'
src=$tmp/src mnt=$tmp/mnt

cat >"$tmp/make.py" <<'END'
import os, random, sys, tarfile
import numpy as np
from PIL import Image
src, h5 = sys.argv[1], sys.argv[2] == 'yes'
rng = np.random.default_rng(1)
for c, name in enumerate(['cat', 'Dog', 'a b', 'ärger', 'empty.d']):
    os.makedirs(f'{src}/{name}/sub dir/deeper')
    for i in range(0 if name == 'empty.d' else 11):
        where = ['', 'sub dir/', 'sub dir/deeper/'][i % 3]
        ext = ['jpg', 'JPEG', 'png', 'bmp', 'ppm', 'webp', 'tif'][i % 7]
        pixels = rng.integers(0, 256, (24 + c, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(f'{src}/{name}/{where}{i}.{ext}',
                                     format={'jpg': 'JPEG', 'tif': 'TIFF'}.get(ext, ext.upper()))
    open(f'{src}/{name}/not-an-image.txt', 'w').write('x')
    open(f'{src}/{name}/x.png', 'wb').write(open(f'{src}/cat/sub dir/deeper/2.png', 'rb').read())
os.symlink('0.jpg', f'{src}/cat/link.jpg')
open(f'{src}/root.jpg', 'wb').write(b'not in a class')
rng.integers(0, 2**31, 3_000_000, dtype=np.int32).tofile(f'{src}/tokens.bin')
np.save(f'{src}/array.npy', rng.random((1000, 300)))
with tarfile.open(f'{src}/shard.tar', 'w') as t:
    t.add(f'{src}/cat', arcname='cat')
if h5:
    import h5py
    with h5py.File(f'{src}/data.h5', 'w') as f:
        f['x'] = rng.random((2000, 100))
        f.create_dataset('z', data=rng.integers(0, 9, (500, 500)), compression='gzip', chunks=(50, 50))
END
h5=no
$python -c 'import h5py' 2>/dev/null && h5=yes
mkdir "$src"
$python "$tmp/make.py" "$src" $h5 || bail_out 'cannot make the data set'
ok 'mount' mount_up "$src" "$mnt"

cat >"$tmp/folder.py" <<'END'
import os, sys
import torch
from torchvision import transforms
from torchvision.datasets import ImageFolder
src, mnt = sys.argv[1:]
def folder(root):
    # a class without a picture is refused by default; the one we have has x.png
    return ImageFolder(root, transforms.Compose([transforms.Resize((24, 32)), transforms.ToTensor()]))
a, b = folder(src), folder(mnt)
assert a.classes == b.classes and a.class_to_idx == b.class_to_idx
names = [os.path.relpath(p, src) for p, _ in a.samples]
assert names == [os.path.relpath(p, mnt) for p, _ in b.samples], 'other samples'
assert [t for _, t in a.samples] == [t for _, t in b.samples]
def load(data, seed):
    generator = torch.Generator().manual_seed(seed)
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, num_workers=2, generator=generator)
    return list(loader)
for epoch in range(2):
    for (x, s), (y, t) in zip(load(a, epoch), load(b, epoch), strict=True):
        assert torch.equal(x, y) and torch.equal(s, t), 'other tensors'
lists = [line for line in open(f'{mnt}/.dealfs/samples.d/imagefolder', 'rb').read().split(b'\n')][:-1]
# the symlink is a sample to ImageFolder; dealfs counts regular files and says so
regular = [n.encode() for n in names if not os.path.islink(f'{src}/{n}')]
assert lists == regular, f'samples.d/imagefolder: {lists[:5]} is not {regular[:5]}'
END
ok 'ImageFolder and DataLoader: the same samples and tensors, and samples.d/imagefolder' \
    $python "$tmp/folder.py" "$src" "$mnt"
rm "$src/cat/link.jpg"
ok 'unmount' dealfs umount "$mnt"
ok 'mount without the symlink' dealfs mount "$src" "$mnt"
cat >"$tmp/exact.py" <<'END'
import os, struct, sys
from torchvision.datasets import ImageFolder
data = ImageFolder(sys.argv[1])
lines = open(sys.argv[1] + '/.dealfs/samples.d/imagefolder', encoding='utf-8').read().splitlines()
assert len(lines) == len(data.samples)
for i, (path, _) in enumerate(data.samples):
    assert path == f'{sys.argv[1]}/{lines[i]}', f'line {i}: {lines[i]} is not {path}'
files = open(sys.argv[1] + '/.dealfs/samples', encoding='utf-8').read().splitlines()
with open(sys.argv[1] + '/.dealfs/samples.d/imagefolder.packed', 'rb', buffering=0) as f:
    packed = f.read()
    assert len(packed) == os.fstat(f.fileno()).st_size and os.pread(f.fileno(), 50, 30) == packed[30:80]
records = [(f'{sys.argv[1]}/{files[file]}', label, length, offset)
           for file, length, offset, label in struct.iter_unpack('<IIQI', packed)]
assert records == [(path, label, os.path.getsize(path), 0) for path, label in data.samples], records[:3]

import dealfs.torch
images = dealfs.torch.Records(sys.argv[1], 'imagefolder')
assert images.targets.tolist() == data.targets
wanted = [(open(path, 'rb').read(), label) for path, label in data.samples]
assert images[list(range(len(data)))] == wanted, 'other items by ranges'
sampler = dealfs.torch.Sampler(images, batch_size=4)
sampler.set_epoch(1)
order = list(sampler)
assert images[order] == [wanted[i] for i in order], 'other items by the stream'
END
ok 'line i of samples.d/imagefolder is samples[i], packed it has the labels, and Records gives both' \
    env PYTHONPATH="$top_srcdir/etc/python" $python "$tmp/exact.py" "$mnt"

cat >"$tmp/arrays.py" <<'END'
import random, sys, tarfile, io
import numpy as np
src, mnt = sys.argv[1:]
a, b = (np.memmap(f'{d}/tokens.bin', dtype=np.int32, mode='r') for d in (src, mnt))
rng = random.Random(1)
for _ in range(500):
    at = rng.randrange(len(a) - 1025)
    assert np.array_equal(a[at:at + 1025], b[at:at + 1025]), 'memmap'
assert np.array_equal(np.fromfile(f'{src}/tokens.bin', dtype=np.int32),
                      np.fromfile(f'{mnt}/tokens.bin', dtype=np.int32))
assert np.array_equal(np.load(f'{src}/array.npy'), np.load(f'{mnt}/array.npy', mmap_mode='r'))
with tarfile.open(f'{src}/shard.tar') as s, tarfile.open(f'{mnt}/shard.tar') as t:
    assert s.getnames() == t.getnames()
    for m in s.getmembers():
        if m.isreg():
            assert s.extractfile(m).read() == t.extractfile(m.name).read(), m.name
END
ok 'numpy.memmap, fromfile, load; tarfile' $python "$tmp/arrays.py" "$src" "$mnt"
cat >"$tmp/h5.py" <<'END'
import sys
import h5py, numpy as np
with h5py.File(sys.argv[1] + '/data.h5') as a, h5py.File(sys.argv[2] + '/data.h5') as b:
    for key in a:
        assert np.array_equal(a[key][:], b[key][:]), key
    assert np.array_equal(a['x'][17:1900:31, 3:90:7], b['x'][17:1900:31, 3:90:7])
END
if [ $h5 = yes ]; then
    ok 'h5py' env HDF5_USE_FILE_LOCKING=TRUE $python "$tmp/h5.py" "$src" "$mnt"
else
    skip 1 'python3-h5py is not installed'
fi
ok 'unmount' dealfs umount "$mnt"
nothing_left
done_testing
