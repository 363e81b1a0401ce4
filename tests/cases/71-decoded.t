#!/bin/bash
# Pictures as arrays: what decoded/ gives equals what Pillow decodes; what is no picture is refused with its reason.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

export DEALFS_IMAGE_PATIENCE=3600 # an image that hangs does so as long as it is looked at
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import numpy, PIL' 2>/dev/null || plan_skip 'no numpy or no Pillow'
src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults
cat >"$tmp/make.py" <<'END'
import os, sys
import numpy as np
from PIL import Image
root = sys.argv[1]
rng = np.random.default_rng(1)

def photo(width, height):
    """Soft areas and an edge."""
    y, x = np.mgrid[0:height, 0:width]
    a = np.stack([128 + 100 * np.sin(x / 23 + y / 31), 255 * x / width, 255 * y / height], axis=-1)
    a[height // 3:height // 2, width // 4:width // 2] = rng.integers(0, 255, 3)
    return Image.fromarray(a.clip(0, 255).astype(np.uint8))

for c in 'cat', 'dog', '7':
    os.makedirs(f'{root}/{c}')
for i in range(12):
    of = 'cat' if i % 2 else 'dog'
    photo(200 + 37 * i, 150 + 11 * i).save(f'{root}/{of}/{i:02}.jpg', quality=90, subsampling=i % 3)
photo(1600, 1200).save(f'{root}/cat/large.jpg', quality=85)
photo(300, 200).save(f'{root}/cat/new\nline.jpg')
photo(301, 203).convert('L').save(f'{root}/dog/grey.jpg')
photo(400, 300).save(f'{root}/dog/progressive.jpg', progressive=True)
for o in range(1, 9):
    exif = Image.Exif()
    exif[0x112] = o
    photo(120, 80).save(f'{root}/7/turned{o}.jpg', exif=exif)
photo(100, 100).save(f'{root}/dog/png.JPEG', 'PNG')
photo(100, 100).convert('CMYK').save(f'{root}/dog/cmyk.jpg')
whole = open(f'{root}/cat/01.jpg', 'rb').read()
open(f'{root}/dog/cut.jpg', 'wb').write(whole[:len(whole) // 2])
open(f'{root}/dog/headless.jpg', 'wb').write(whole[:100])
open(f'{root}/dog/empty.jpg', 'wb').write(b'')
END
cat >"$tmp/compare.py" <<'END'
"""compare.py SOURCE DECODED [PIXELS]: every picture against Pillow, read and mapped."""
import os, sys
import numpy as np
from PIL import Image, ImageOps
source, decoded, side = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
good = bad = 0
for at, _, names in sorted(os.walk(source)):
    for name in sorted(names):
        path = os.path.relpath(os.path.join(at, name), source)
        try:
            with Image.open(os.path.join(source, path)) as opened:
                assert opened.format == 'JPEG' and opened.mode != 'CMYK'
                picture = ImageOps.exif_transpose(opened.convert('RGB'))
        except Exception:
            continue
        if side and min(picture.size) > side:
            w, h = picture.size
            size = (side, int(side * h / w)) if w < h else (int(side * w / h), side)
            picture = picture.resize(size, Image.LANCZOS, reducing_gap=3)
        expected = np.asarray(picture).astype(int)
        file = os.path.join(decoded, path + '.npy')
        for mode in 'r', None:
            a = np.load(file, mmap_mode=mode)
            assert a.shape == expected.shape and a.dtype == np.uint8, (path, a.shape, expected.shape)
            off = np.abs(a.astype(int) - expected)
            limit_ok = off.max() <= 1 if not side else 10 * np.log10(255 ** 2 / max((off ** 2).mean(), 1e-9)) >= 35
            good, bad = good + limit_ok, bad + (not limit_ok)
            if not limit_ok:
                print(f'# {path!r}: up to {off.max()} off', file=sys.stderr)
        assert os.stat(file).st_size == 128 + expected.size, (path, os.stat(file).st_size)
print(good, bad)
END
ok 'pictures' "$python" "$tmp/make.py" "$src"
chmod 640 "$src/dog/00.jpg"
ok 'mount' mount_up -o ram=64M,allow_other "$src" "$mnt"
view=$mnt/.dealfs/decoded
compare() { "$python" "$tmp/compare.py" "$src" "$@"; }
is 'all equal Pillow within a level, read and mapped' "$(compare "$view")" '48 0'
is 'scaled as Pillow would, by 35 dB' "$(compare "$view/64" 64)" '48 0'
is 'PIXELS larger than any change nothing' "$(compare "$view/65535")" '48 0'

# --- the tree ---
is 'the root lists directories' "$(cd "$view" && echo *)" '7 cat dog'
is 'which list every file' "$(ls "$view/dog" | sort | xargs)" "$(ls "$src/dog" | sed 's/$/.npy/' | sort | xargs)"
is 'no attributes are asked for' \
    "$(find "$view" -name '*.npy' -printf x | wc -c)" "$(find "$src" -type f -printf x | wc -c)"
is 'a directory of the dataset goes before PIXELS' "$(ls "$view/7" | wc -l)" 8
is 'which has zeros before it then' "$(cd "$view/007" && echo *)" '7 cat dog'
fails 'there is nothing else' stat "$view/nothing.npy"
fails 'nor a number too large' stat "$view/65536"
fails 'nor the file itself' stat "$view/dog/grey.jpg"
fails 'it cannot be written' sh -c "echo x >'$view/dog/grey.jpg.npy'"
is 'modes are those of the source' "$(stat -c %a "$view/dog/00.jpg.npy" "$view/dog/grey.jpg.npy" | xargs)" '440 444'

# --- what is no picture ---
refused() { # name, errno's name, regex of the reason
    fails "$1 is refused" stat "$view/dog/$1.npy"
    like 'with its reason' "$(grep -F "decoded/dog/$1.npy" "$mnt/.dealfs/errors" | tail -1)" "$2.*$3"
}
refused png.JPEG EIO 'not-jpeg: '
refused cmyk.jpg EIO 'colours: is CMYK'
refused headless.jpg EIO 'truncated: '
refused empty.jpg EIO 'not-jpeg: |truncated: '
ok 'a picture cut short shows its size' stat "$view/dog/cut.jpg.npy"
like 'and fails when read' "$(cat "$view/dog/cut.jpg.npy" 2>&1 >/dev/null)" 'Input/output error'
like 'with its reason' "$(tail -1 "$mnt/.dealfs/errors")" 'decoded/dog/cut.jpg.npy.*truncated: '
# Processes that decode have no rights, and write into nothing that another one, or the server, still needs. They end a
# while after their last work.
side=80
two_work() {
    cat "$view/$side/cat/large.jpg.npy" >/dev/null &
    cksum "$view/$((side + 1))/cat/large.jpg.npy"
    wait $!
    side=$((side + 2))
}
ok 'two decode at once' two_work
server=$(value "$mnt" pids.server)
workers() { pgrep -P "$server" dealfs-resizer; }
lines() { # that all decoders' /proc/PID/status show
    local pid
    for pid in $(workers); do grep -E "^($1):" "/proc/$pid/status" | xargs; done 2>/dev/null | sort -u | xargs | tr -s 0
}
show() { # what all of them show that there are; `shown`
    shown=$(lines "$1")
    [ -n "$shown" ] || ! two_work
}
wait_for show 'CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs'
is 'who decodes has no capability and can win none' "$shown" 'CapInh: 0 CapPrm: 0 CapEff: 0 CapAmb: 0 NoNewPrivs: 1'
wait_for show Seccomp
[ -n "${TEST_SANITIZER-}" ] || is 'makes few system calls' "$shown" 'Seccomp: 2'
wait_for show 'Uid|Gid|CapBnd'
[ "$(id -u)" != 0 ] || is 'and is nobody where root mounts' "$shown" \
    'Uid: 65534 65534 65534 65534 Gid: 65534 65534 65534 65534 CapBnd: 0'
shared() { # memory that decoders can write and somebody else sees, process by process
    local pid
    for pid in $1; do
        awk '$2 ~ /w.s/ { print $5 }' "/proc/$pid/maps" | sort -u
    done 2>/dev/null
}
those=$(workers) slots=''
share() { # `those` work and share `slots`
    those=$(workers) && slots=$(shared "$those") && [ -n "$slots" ] || ! two_work
}
[ "$(id -u)" != 0 ] || ok 'some share memory with the server' wait_for share
is 'none has more of it than its own slot' "$(sort <<<"$slots" | uniq -d)" ''
ok 'one each' test "$(wc -l <<<"$slots")" -le "$(wc -l <<<"$those")"
ok 'status tells what it took to decode' test "$(value "$mnt" upstream.decode_ns)" -gt 0
ok 'and to fetch' test "$(value "$mnt" upstream.fetch_ns)" -gt 0

# --- users ---
if [ "$(id -u)" = 0 ]; then
    as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
    chmod 711 "$tmp"
    if as_nobody test -r "$view/dog/grey.jpg.npy"; then
        ok 'another user may read what he may read' \
            as_nobody cmp -n 4 "$view/dog/grey.jpg.npy" "$view/7/turned1.jpg.npy"
        fails 'and not what he may not' as_nobody cat "$view/dog/00.jpg.npy"
        fails 'nor scaled' as_nobody cat "$view/32/dog/00.jpg.npy"
    else
        skip 'other users' 'cannot get here'
    fi
fi
ok 'umount' dealfs umount "$mnt"

# --- a small cache and little memory: a source that hangs, pictures too large for each other, eight readers ---
: >"$faults"
DEALFS_SOURCE_FAULTS=file=$faults ok 'mount with a small cache' \
    mount_up -o ram=64M,decoded=1M,request_memory=16M "$src" "$mnt"
cat "$view/dog/grey.jpg.npy" >"$tmp/grey.npy"
set_faults hang
for file in "$src"/*/*.jpg; do cat "$view/${file#"$src/"}.npy" >/dev/null 2>&1 & done
all_wait() { [ "$(value "$mnt" parked)" -ge 16 ]; }
ok 'all that decode wait for the source' wait_for all_wait
drop_cache "$view/dog/grey.jpg.npy"
ok 'what is kept is read meanwhile' cmp "$view/dog/grey.jpg.npy" "$tmp/grey.npy"
set_faults ''
wait
for side in 700 800 900 1000; do
    { cat "$view/$side/cat/large.jpg.npy" || touch "$tmp/failed"; } >/dev/null 2>&1 &
done
wait
ok 'each waits for memory that another has' test ! -e "$tmp/failed"
for i in 1 2 3 4 5 6 7 8; do compare "$view" >"$tmp/out$i" & done
wait
is 'eight readers' "$(cat "$tmp"/out? | sort -u)" '48 0'
ok 'little is kept' test "$(value "$mnt" decoded.kept)" -le $((1600 * 1200 * 3 + (1 << 20)))
ok 'umount' dealfs umount "$mnt"

# --- pictures larger than the cache, eight readers, each in an order of its own ---
mkdir "$tmp/wide"
for i in 1 2 3 4 5 6 7 8 9 a b c; do cp "$src/cat/large.jpg" "$tmp/wide/$i.jpg"; done
cat >"$tmp/read.py" <<'END'
"""read.py SEED FILE…: each file in turn, piece by piece; is it long enough?"""
import os, random, sys
names = sys.argv[2:]
random.Random(int(sys.argv[1])).shuffle(names)
for name in names:
    fd, got = os.open(name, os.O_RDONLY), 0
    while piece := os.read(fd, 50000):
        got += len(piece)
    assert got == os.fstat(fd).st_size == 128 + 1600 * 1200 * 3, got
    os.close(fd)
END
ok 'mount' mount_up -o ram=64M,decoded=1M "$tmp/wide" "$mnt"
readers() { # status by status
    local i failed=0 jobs=()
    for i in 1 2 3 4 5 6 7 8; do "$python" "$tmp/read.py" $i "$view"/*.npy & jobs+=($!); done
    for i in "${jobs[@]}"; do wait "$i" || failed=1; done
    return $failed
}
ok 'eight readers of what is never kept' readers
# Twice or so each. A reader that pauses for a second may find that its picture has made room for another one: it is
# decoded again then. If each of the 44 READs of a reader did that, there would be thousands.
ok 'each is decoded about once for a reader at most' test "$(value "$mnt" decoded.pictures)" -le 200
ok 'and no more is kept than one' test "$(value "$mnt" decoded.kept)" -le $((1600 * 1200 * 4 + (1 << 20)))
server=$(value "$mnt" pids.server)
memory() { awk '/RssAnon|RssShmem/ { n += $2 } END { print n }' "/proc/$server/status"; } # KiB
ok 'umount' dealfs umount "$mnt"
ok 'mount' mount_up -o ram=8M,decoded=16M "$tmp/wide" "$mnt"
server=$(value "$mnt" pids.server)
readers &
reading=$! most=0
while kill -0 $reading 2>/dev/null; do
    now=$(memory)
    [ "${now:-0}" -le $most ] || most=$now
    drop_cache "$view"/*.npy
done
wait $reading
ok "the server's memory has its bound: $((most >> 10)) MiB" \
    test $most -le $(((${TEST_SANITIZER:+1000} + 64 + 16 + 8) << 10))
ok 'umount' dealfs umount "$mnt"

# --- small pictures: each has a descriptor ---
mkdir "$tmp/many"
"$python" -c "
from PIL import Image
import sys
for i in range(120): Image.new('RGB', (40, 30)).save(f'{sys.argv[1]}/{i}.jpg')" "$tmp/many"
few_descriptors() (ulimit -n 300 && mount_up -o ram=8M "$tmp/many" "$mnt")
ok 'mount, with few descriptors' few_descriptors
cat "$view"/*.npy >/dev/null
is 'all small pictures are read' "$(value "$mnt" decoded.pictures)" 120
kept=$(readlink "/proc/$(value "$mnt" pids.server)/fd"/* | grep -c dealfs-picture)
ok "and few descriptors are theirs and their decoders': $kept" test "$kept" -le 80 -a "$kept" -gt 0
ok 'umount' dealfs umount "$mnt"

# --- processes that die, or do not come back: each costs one picture ---
log=$tmp/state/log
length=$(stat -c %s "$src/cat/large.jpg")
reason() { grep -F 'cat/large.jpg.npy' "$mnt/.dealfs/errors" | tail -1; }
others() { [ "$(compare_in dog) $(compare_in 7)" = '16 0 16 0' ]; }
compare_in() { "$python" "$tmp/compare.py" "$src/$1" "$view/$1"; }
begin_hanging() { # a reader that waits for a picture
    hung=$(grep -c 'it hangs' "$log")
    cat "$view/cat/large.jpg.npy" >/dev/null 2>"$tmp/said" &
    reader=$!
    wait_for hangs_again
}
hangs_again() { [ "$(grep -c 'it hangs' "$log")" -gt "$hung" ]; }
DEALFS_IMAGE_FAULT=crash=$length ok 'mount, where the codec dies' mount_up -o "state=$tmp/state,ram=64M" "$src" "$mnt"
server=$(value "$mnt" pids.server)
like 'its reader gets EIO' "$(cat "$view/cat/large.jpg.npy" 2>&1 >/dev/null)" 'Input/output error'
like 'with the reason' "$(reason)" 'EIO.*crashed: '
ok 'all others are decoded' others
all_dead() { ! ps -o stat= -p "$(workers | paste -sd,)" | grep -qv Z; }
kill_idle() { # one that has just decoded
    local pids
    cksum "$view/$((side += 1))/cat/01.jpg.npy"
    mapfile -t pids < <(workers)
    kill -9 "${pids[@]}"
}
ok 'what is idle is killed' wait_for kill_idle
ok 'and dead' wait_for all_dead
drop_cache "$view"/*/*.npy
is 'nobody sees that' "$("$python" "$tmp/compare.py" "$src/dog" "$view/33/dog" 33)" '16 0'
is 'and the data' "$(cksum <"$mnt/cat/large.jpg")" "$(cksum <"$src/cat/large.jpg")"
is 'the server is the same' "$(value "$mnt" pids.server) $(value "$mnt" restarts.count)" "$server 0"
no_workers() { ! workers >/dev/null; }
ok 'no process is kept for nothing' wait_for no_workers
ok 'umount' dealfs umount "$mnt"

DEALFS_IMAGE_FAULT=hang=$length ok 'mount, where the codec hangs' mount_up -o "state=$tmp/state,ram=64M" "$src" "$mnt"
server=$(value "$mnt" pids.server)
ok 'a reader waits' begin_hanging
ok 'others are decoded meanwhile' others
killed_for_good() { # the kernel asks again for a page that it has asked for ahead
    workers | xargs -r kill -9
    has_ended $reader
}
ok 'the process is killed: the reader is not left waiting' wait_for killed_for_good
fails 'it fails' wait $reader
like 'it gets EIO' "$(cat "$tmp/said")" 'Input/output error'
ok 'another reader waits' begin_hanging
kill -9 $reader
wait $reader 2>/dev/null
nobody_waits() { [ "$(value "$mnt" parked)" = 0 ]; }
ok 'one that is killed takes the process with it' wait_for nobody_waits
ok 'a third one waits' begin_hanging
ok 'the mount is taken away' dealfs umount --lazy "$mnt"
wait $reader
ok 'and did not wait for it' ended_in_order "$log"
DEALFS_IMAGE_PATIENCE=2 ok 'mount, with less patience' mount_up -o "state=$tmp/state,ram=64M" "$src" "$mnt"
server=$(value "$mnt" pids.server)
ok 'a picture is decoded' wait_for cksum "$view/cat/01.jpg.npy"
stop_workers() { workers | xargs -r kill -STOP; }
stopped_costs() { # one that has just decoded is stopped, and gets a picture
    cksum "$view/$((side += 1))/cat/01.jpg.npy"
    stop_workers
    said=$(cat "$view/$side/cat/large.jpg.npy" 2>&1 >/dev/null)
    [[ $said == *'Input/output error' ]]
}
ok 'a process that is stopped costs its picture' wait_for stopped_costs
like 'with the reason' "$(reason)" 'crashed: the process that worked on it hung'
ok 'not another' wait_for others
stop_workers
drop_cache "$view/cat/01.jpg.npy"
ok 'nor is one needed for what was looked at before' stat "$view/cat/01.jpg.npy"
is 'the server is the same' "$(value "$mnt" pids.server) $(value "$mnt" restarts.count)" "$server 0"
ok 'umount' dealfs umount "$mnt"

nothing_left
done_testing
