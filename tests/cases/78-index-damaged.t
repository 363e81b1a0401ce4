#!/bin/bash
# `dealfs index` of damaged containers: each byte of a small one changed, and each of its beginnings. What is accepted
# is what a slow reading in Python finds; what is refused is named, and left out with --skip-broken.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src mnt=$tmp/mnt
cat >"$tmp/damage.py" <<'END'
import collections, io, os, struct, sys, tarfile
from tfrecords import crc, framed
what, src = sys.argv[1:3]

def small_tar(form):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode='w', format=form) as tar:
        for name, size in ('a/one.jpg', 5), ('a/one.cls', 0), ('a/' + 'n' * 120 + '.jpg', 513):
            info = tarfile.TarInfo(name)
            info.size = size
            tar.addfile(info, io.BytesIO(b'x' * size))
    return data.getvalue().rstrip(b'\0') + bytes(-len(data.getvalue().rstrip(b'\0')) % 512 + 1024)

WHOLE = {'gnu.tar': small_tar(tarfile.GNU_FORMAT), 'pax.tar': small_tar(tarfile.PAX_FORMAT),
         'x.tfrecord': b''.join(framed(b'y' * n) for n in (0, 1, 100))}

# Some versions of tarfile parse the padding of a pax header, which says nothing.
PADDING = {'pax.tar': WHOLE['pax.tar'].index(b' path=') + len('path=a/.jpg\n ') + 120}

def make():
    for name, data in WHOLE.items():
        os.makedirs(f'{src}/{name}')
        for at in range(len(data)):
            for kind, damaged in ('cut', data[:at]), ('low', data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]), \
                    ('high', data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1:]):
                if at % 16 in (0, 1) if kind == 'cut' else at != PADDING.get(name):
                    open(f'{src}/{name}/{at:04}{kind}', 'wb').write(damaged)

def key_of(name):
    folder, slash, base = name.rpartition('/')
    dot = base.find('.')
    return folder + slash + (base[:dot] if dot > 0 else base)

def tar_records(path):
    found, end = [], 0
    with tarfile.open(path, 'r:', encoding='utf-8', errors='surrogateescape') as tar:
        for m in tar:
            begin, end = end, m.offset_data + (-(-m.size // 512) * 512 if m.isreg() else 0)
            if m.isreg() and found and found[-1][2] == key_of(m.name):
                found[-1][1] = end - found[-1][0]
            elif m.isreg():
                found.append([begin, end - begin, key_of(m.name)])
    return [(begin, length) for begin, length, _ in found]

def tf_records(path):
    data, at, found = open(path, 'rb').read(), 0, []
    while at < len(data):
        length, = struct.unpack_from('<Q', data, at)
        if crc(data[at:at + 8]) != data[at + 8:at + 12] or at + length + 16 > len(data):
            raise ValueError(f'byte {at}')
        found.append((at, length + 16))
        at += length + 16
    return found

def check(listed, kind):
    """What is listed is what Python finds; Python finds nothing in the rest, or dealfs is stricter: how often?"""
    got, wrong, stricter = collections.defaultdict(list), [], 0
    for line in open(listed):
        path, offset, length = line.rstrip('\n').split('\t')[:3]
        got[path].append((int(offset), int(length)))
    files = sorted(os.listdir(f'{src}/{kind}'))
    for name in files:
        try:
            wanted = (tar_records if kind.endswith('tar') else tf_records)(f'{src}/{kind}/{name}')
        except Exception:
            wanted = []
        mine = got.get(f'{kind}/{name}', [])
        if mine and mine != wanted:
            wrong.append((name, mine, wanted))
        stricter += not mine and wanted != []
    print(wrong[:3], 0 < len(got) < len(files), stricter if kind.endswith('record') else '')

make() if what == 'make' else check(*sys.argv[3:])
END
damage() { PYTHONPATH=$top_srcdir/tests/lib python3 "$tmp/damage.py" "$1" "$src" "${@:2}" 2>&1; }
mkdir -p "$src"
ok 'containers' damage make
settle "$src"
ok 'a mount' mount_up -o ram=100M "$src" "$mnt"
for kind in gnu.tar:tar pax.tar:tar x.tfrecord:tfrecord; do
    fails "${kind%:*}: one that is broken is an error" dealfs index "$mnt" --output "$tmp/none" --under "${kind%:*}" \
        --format "${kind#*:}"
    ok "${kind%:*}: broken ones are left out" dealfs index "$mnt" --output "$tmp/list" --skip-broken \
        --under "${kind%:*}" --format "${kind#*:}"
    want=$'[] True '
    [ "$kind" != x.tfrecord:tfrecord ] || want='[] True 0'
    is "${kind%:*}: all others as Python reads them" "$(damage check "$tmp/list" "${kind%:*}")" "$want"
done
ok 'umount' dealfs umount "$mnt"
nothing_left 'nothing is left'
done_testing
