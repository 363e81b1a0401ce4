#!/bin/bash
# Streams: a rank's epoch as one file.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require tar
python3 -c 'import numpy' 2>/dev/null || plan_skip 'no NumPy'
src=$tmp/src mnt=$tmp/mnt
# Records of all lengths in three containers, in no order; four of them are empty.
mkdir -p "$src/c"
python3 - "$src" "$tmp" <<'END'
import random, sys
src, tmp = sys.argv[1:]
random.seed(1)
text = []
for name in 'c/a', 'c/b', 'c/100%':
    offset = 0
    with open(f'{src}/{name}', 'wb') as f:
        for i in range(30):
            n = random.choice([1, 7, 100, 5000, 300000])
            f.write(random.randbytes(n))
            text.append(f'{name.replace("%", "%25")}\t{offset}\t{n}\n')
            offset += n
text += ['c/a\t1\t0\n', 'c/b\t0\t0\n', 'c/b\t100\t0\n', 'c/b\t100\t0\n']
random.shuffle(text)
open(f'{tmp}/text', 'w').writelines(text)
with open(f'{src}/big', 'wb') as f:
    for i in range(50):
        f.write(random.randbytes(2 << 20))
big = [f'big\t{i * 10000}\t{10000 - i % 7}\n' for i in range((100 << 20) // 10000)]
random.shuffle(big)
open(f'{tmp}/big', 'w').writelines(big)
open(f'{src}/late', 'wb').write(random.randbytes(40 * 8192))
pages = [f'{name}\t{i * 8192}\t8192\n' for name in ('big', 'late') for i in range(40)]
random.shuffle(pages)
open(f'{tmp}/pages', 'w').writelines(pages)
# Neighbours in the file and in the list, except for some that are left out or there twice.
rows = [i for i in range(1200) if i % 401 != 7]
rows[500:500] = [rows[500], rows[499], rows[500]]
open(f'{tmp}/next', 'w').writelines(f'big\t{i * 4096}\t4096\n' for i in rows)
open(f'{tmp}/small', 'w').writelines(f'c/a\t{i * 100}\t{i % 90}\t5\n' for i in range(41))
END
python3 "$top_srcdir/tests/lib/streams.py" make "$src"
mkdir "$src/many"
python3 - "$src/many/clip.tar" <<'END'
import io, sys, tarfile
with tarfile.open(sys.argv[1], 'w', format=tarfile.USTAR_FORMAT) as tar:
    for i in range(20000):
        info = tarfile.TarInfo(f'clip.{i:05}.txt')
        info.size = 5
        tar.addfile(info, io.BytesIO(f'{i:05}'.encode()))
END
streams() { python3 "$top_srcdir/tests/lib/streams.py" "$1" "$mnt" "$src" "${@:2}" 2>&1; }
upload() { request_at "$mnt" "$1" samples form=records "${@:2}" >"$tmp/reply"; } # file, words
plan_of() { dealfs plan "$mnt" epoch=1 ranks=2 batch=4 "$@" 2>&1; }
stream=$mnt/.dealfs/plan/epoch=1,ranks=2,batch=4,rank=0

settle "$src"
ok 'a mount' mount_up -o ram=200M "$src" "$mnt"
upload "$tmp/text" name=r
printf 'c/%s\n' b 'a' '100%' b >"$tmp/files"
request_at "$mnt" "$tmp/files" samples name=files >"$tmp/reply"
for list in small big pages next; do upload "$tmp/$list" name=$list; done

# --- the bytes of a plan ---
of=epoch=1,ranks=3,batch=4,samples=r
is 'streams of records are their bytes in the order of the list' "$(streams equal r="$tmp/text" $of,rank=0 \
    $of,rank=2,mode=regular,tail=short $of,rank=1,workers=3,worker=2,echo=1.5 $of,rank=1,order=natural,skip=9)" same
is 'and of files' "$(streams equal files="$tmp/files" epoch=2,ranks=1,batch=1,rank=0,samples=files \
    epoch=2,ranks=2,batch=1,rank=1,tail=short,samples=files)" same
is 'neighbours are read together' "$(streams equal next="$tmp/next" \
    epoch=1,ranks=1,batch=4,rank=0,order=natural,samples=next \
    epoch=1,ranks=2,batch=64,rank=1,order=natural,tail=short,samples=next)" same
is 'over ranks, workers and resumes each record is there once' "$(streams union small="$tmp/small")" same
is 'an empty part is an empty file' "$(stat -c %s "$stream,samples=small,workers=65536,worker=65535,reply=bytes")" 0
is 'with one span' "$(od -An -tu8 "$stream,samples=small,workers=65536,worker=65535,reply=spans" | tr -d ' ')" 0
is 'parts of a list as text' "$(for w in 2 0 1; do
    plan_of samples=small rank=1 tail=short workers=3 worker=$w; done | sort -n)" \
    "$(plan_of samples=small rank=1 tail=short | sort -n)"

# --- each format frames itself ---
index() { # list, words
    dealfs index "$mnt" "$1" "${@:2}" >"$tmp/index" 2>&1 &&
        dealfs index --output "$tmp/$1" "$mnt" "${@:2}" >>"$tmp/index" 2>&1 || diag "$(cat "$tmp/index")"
}
for kind in tar same tfrecord lines rows; do index $kind --under $kind; done
tars=epoch=1,ranks=2,batch=3,rank=1,samples=tar
same=epoch=1,ranks=1,batch=3,rank=0,samples=same
is 'the stream of a list of tars is a tar' \
    "$(streams frames tar="$tmp/tar" $tars $tars,workers=2,worker=1 $tars,skip=12)" same
is 'with keys=unique, too' "$(streams frames tar="$tmp/tar" $tars,keys=unique)" same
ok 'GNU tar reads it' tar -tf "$mnt/.dealfs/plan/$tars,keys=unique,reply=bytes"
fails 'records that share keys are refused' cat "$mnt/.dealfs/plan/$same,reply=bytes"
like 'two of them are named' "$(tail -1 "$mnt/.dealfs/errors")" 'records 0 and [0-9]+ of the list have the same key'
is 'keys=unique puts positions before them' "$(streams frames same="$tmp/same" $same,keys=unique)" same
fails 'an echo may put a record next to itself' cat "$mnt/.dealfs/plan/$tars,echo=20,echo_buffer=0,reply=bytes"
is 'TFRecord' "$(streams equal tfrecord="$tmp/tfrecord" epoch=1,ranks=2,batch=2,rank=0,samples=tfrecord)" same
is 'TFRecord in the order of the list' "$(streams equal tfrecord="$tmp/tfrecord" \
    epoch=1,ranks=1,batch=2,rank=0,order=natural,samples=tfrecord)" same
is 'tars in the order of the list, with other names' "$(streams frames tar="$tmp/tar" \
    epoch=1,ranks=1,batch=3,rank=0,order=natural,samples=tar,keys=unique)" same
is 'lines in the order of the list' "$(streams equal lines="$tmp/lines" \
    epoch=1,ranks=1,batch=2,rank=0,order=natural,samples=lines)" same
is 'lines all end' "$(python3 -c "import json, sys
print(sorted(json.loads(line)['n'] for line in open(sys.argv[1])))" \
    "$mnt/.dealfs/plan/epoch=2,ranks=1,batch=4,rank=0,samples=lines,reply=bytes")" "[$(seq -s ', ' 0 19)]"
is 'and are the bytes of the list' \
    "$(streams equal lines="$tmp/lines" epoch=2,ranks=1,batch=4,rank=0,samples=lines)" same
is 'rows of .npy are a bare array' "$(python3 -c "import numpy, sys
rows = numpy.fromfile(sys.argv[1], '<i4').reshape(-1, 3)
print(rows.shape, (rows[:, 0] + 1 == rows[:, 1]).all())
print(sorted(rows[:, 0]) == [*range(0, 60, 3), *range(1000, 1060, 3)])" \
    "$mnt/.dealfs/plan/epoch=2,ranks=1,batch=4,rank=0,samples=rows,reply=bytes")" $'(40, 3) True\nTrue'

# --- what is refused ---
like 'bytes are a file' "$(plan_of rank=0 reply=bytes)" 'reply=bytes. is a file'
like 'of one rank' "$(plan_of reply=spans)" 'reply=spans.: needs .rank'
like 'a worker is one of several' "$(plan_of rank=0 workers=2 worker=2)" '0 to 1'
fails 'as a file, too' cat "$stream,workers=2,worker=2,reply=bytes"
like 'and errors has it' "$(tail -1 "$mnt/.dealfs/errors")" 'worker=2.: must be'

# --- reading ahead; a container that changed; the server dies ---
# For two seconds all blocks may belong to the streams that were read last; then nothing is read ahead of a stream that
# is read once. So others are begun.
begin() {
    before=$(answered "$mnt" ram) last='' epoch=$((epoch + 1))
    exec 3<"$mnt/.dealfs/plan/epoch=$epoch,ranks=1,batch=8,rank=0,samples=big,reply=bytes"
    head -c 4096 <&3 | wc -c
}
read_ahead() {
    local now
    now=$(answered "$mnt" ram)
    [ $((now - before)) -lt $((1 << 20)) ] || return 0
    if [ "$now" = "$last" ]; then begin >"$tmp/.begun"; else last=$now; fi
    return 1
}
cat "$mnt/big" >/dev/null
epoch=8
begin >"$tmp/first"
is 'the first bytes of a stream' "$(cat "$tmp/first")" 4096
ok 'what follows is read ahead' wait_for read_ahead
exec 3<&-
is 'two long streams stay within memory, and drop the pages behind their readers' "$(streams bounded big="$tmp/big" \
    epoch=1,ranks=2,batch=8,rank=0,samples=big epoch=1,ranks=2,batch=8,rank=1,samples=big)" same
is 'so does a stream with other names' "$(streams bounded big="$tmp/big" \
    epoch=2,ranks=2,batch=8,rank=0,samples=big,keys=unique epoch=2,ranks=1,batch=8,rank=0,samples=big)" same
echo more >>"$src/late"
is 'only records of a container that changed fail' "$(streams stale pages="$tmp/pages" \
    epoch=1,ranks=1,batch=8,rank=0,samples=pages late)" same
is 'the server is killed in the middle of a stream' "$(streams survive big="$tmp/big" \
    epoch=3,ranks=3,batch=8,rank=0,samples=big "$(value "$mnt" pids.server)")" same

# --- a record of 20,000 members, 20 MB: how much each READ looks at does not grow with it ---
index many --under many
many=epoch=1,ranks=1,batch=1,rank=0,samples=many,keys=unique
before=$(answered "$mnt" ram)
is 'the stream of a record with many members' "$(python3 - "$mnt/.dealfs/plan/$many,reply=bytes" <<'END'
import sys, tarfile
with open(sys.argv[1], 'rb') as f, tarfile.open(fileobj=f, mode='r|') as tar:
    print(all(member.name == f'0-clip.{i:05}.txt' and tar.extractfile(member).read() == f'{i:05}'.encode()
              for i, member in enumerate(tar)))
END
)" True
few() { [ "$1" -le $((5 * $(stat -c %s "$src/many/clip.tar"))) ] || { diag "$1 bytes"; false; }; }
ok 'for it the server reads few times as many bytes' few $(($(answered "$mnt" ram) - before))

# --- lists come and go, files are many ---
python3 - "$stream,samples=r,reply=bytes" "$mnt" >"$tmp/out" 2>&1 <<'END'
import os, sys
path, mnt = sys.argv[1:]

def ask(request):
    with open(f'{mnt}/.dealfs/control', 'r+b', buffering=0) as f:
        f.write(request)
        f.read()

def again(fd):
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    return os.pread(fd, 1 << 22, 0)

fd = os.open(path, os.O_RDONLY)
before = again(fd)
ask(b'samples name=r form=records\nc/a\t0\t5\n')
print(again(fd) == before, os.stat(path).st_size)
ask(b'samples name=r action=remove\n')
print(again(fd) == before, os.path.exists(path))
small = path.replace('samples=r', 'samples=small')
many = [os.open(small.replace('epoch=1', f'epoch={e}'), os.O_RDONLY) for e in range(800)]
sizes = [len(os.pread(f, 1 << 20, 0)) for f in many]
print(sizes == [os.fstat(f).st_size for f in many], min(sizes) > 0)
END
is 'an open stream stays what it is when its list is replaced or removed; 800 are open' "$(cat "$tmp/out")" "True 5
True False
True True"
ok 'umount' dealfs umount "$mnt"

# --- memory of streams whose readers have gone ---
ok 'a mount with little memory for requests' mount_up -o ram=64M,request_memory=16M "$src" "$mnt"
python3 -c 'for i in range(300000): print(f"big\t{i * 10}\t10")' >"$tmp/many"
upload "$tmp/many" name=many
read_one() { head -c 1 "$mnt/.dealfs/plan/epoch=$1,ranks=1,batch=1,rank=0,samples=many,reply=bytes" | wc -c; }
is 'twelve streams, each read a little' \
    "$(for epoch in {1..12}; do read_one $epoch; done | sort | uniq -c | xargs)" '12 1'
fits() { [ "$(dealfs plan "$mnt" epoch=90 ranks=1 batch=1 rank=0 samples=many reply=u32 | wc -c)" = 1200000 ]; }
ok 'there is room for a plan soon, although requests go on' wait_for fits
ok 'umount' dealfs umount "$mnt"
nothing_left
done_testing
