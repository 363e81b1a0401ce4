#!/bin/bash
# `dealfs index` in a world: each node parses the containers that it owns. The list is the one that a single node makes,
# also where an owner dies, stops, is slow, or cannot read its container.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src faults=$tmp/faults
mkdir -p "$src"
PYTHONPATH=$top_srcdir/tests/lib python3 - "$src" <<'EOP' || bail_out 'the containers cannot be made'
import io, os, random, sys, tarfile
from tfrecords import framed
src, rng = sys.argv[1], random.Random(7)

for folder in 'tar', 'lines', 'tfrecord', 'broken':
    os.mkdir(f'{src}/{folder}')
for i in range(24):
    with tarfile.open(f'{src}/tar/{i:02}.tar', 'w') as tar:
        for j in range(40):
            info = tarfile.TarInfo(f's{i:02}/\u00fc {j:03}.jpg')
            info.size = rng.choice((0, 1, 512, 5000, 200000 if j == 7 else 900))
            tar.addfile(info, io.BytesIO(rng.randbytes(info.size)))
    # one of them has more records than a piece of an answer has room for
    with open(f'{src}/lines/{i:02}.txt', 'w') as f:
        f.writelines(f'{j * 7}\n' for j in range(rng.randrange(3000) if i != 5 else 130000))
        f.write('the last one')
    with open(f'{src}/tfrecord/{i:02}.tfrecord', 'wb') as f:
        for j in range(30):
            f.write(framed(bytes(rng.randrange(300))))
for i in range(8):
    with open(f'{src}/tar/{i:02}.tar', 'rb') as f, open(f'{src}/broken/{i:02}.tar', 'wb') as to:
        to.write(f.read() if i % 2 else f.read(3000))
EOP
set_faults ''
kinds=(tar lines tfrecord)

# --- a single node ---
mkdir "$tmp/alone"
mount_up -o ram=200M "$src" "$tmp/alone"
digest() { request_at "$1" /dev/null samples "name=$2" action=look; } # mount, list
declare -A alone
for kind in "${kinds[@]}"; do
    ok "$kind, alone" dealfs index "$tmp/alone" "$kind" --under "$kind"
    alone[$kind]=$(digest "$tmp/alone" "$kind")
    dealfs index "$tmp/alone" --output "$tmp/$kind.alone" --under "$kind" 2>/dev/null
done
refusal() { dealfs index "$1" --output "$tmp/none" --under broken 2>&1 | sed -n 's/.*: \(broken.*\)/\1/p'; }
broken=$(refusal "$tmp/alone")
ok 'broken ones, alone' dealfs index "$tmp/alone" --output "$tmp/broken.alone" --under broken --skip-broken
ok 'umount' dealfs umount "$tmp/alone"

# --- a world ---
world_default=ram=200M,peer_timeout=3
words=(-n 1 dealfs mount -o "state=$tmp/state%r,$world_default" "$src" "$tmp/node%r")
mkdir "$tmp/node"{0,1,2}
world_count=3
world_launch "${words[@]}" : -n 1 env DEALFS_SOURCE_FAULTS="file=$faults" "${words[@]:2}" : "${words[@]}"
ok 'three nodes' world_await
sum() { world_sum "$1" 1 2; }
others_read() { [ "$(sum bytes.source)" -gt "$1" ]; }
for kind in "${kinds[@]}"; do
    before=$(sum bytes.source) peer=$(answered "$tmp/node0" peer)
    ok "$kind" env DEALFS_INDEX_PATIENCE=3600 dealfs index "$tmp/node0" "$kind" --under "$kind"
    is "$kind: the same list" "$(digest "$tmp/node0" "$kind")" "${alone[$kind]}"
    is "$kind: on another node, too" "$(digest "$tmp/node2" "$kind")" "${alone[$kind]}"
    ok "$kind: other nodes have read theirs" others_read "$before"
    is "$kind: which do not cross the network" "$(answered "$tmp/node0" peer)" "$peer"
done
for kind in "${kinds[@]}"; do
    ok "$kind, as text, from node 1" dealfs index "$tmp/node1" --output "$tmp/$kind.got" --under "$kind" \
        --format "$kind"
    ok "$kind: the same lines" cmp "$tmp/$kind.alone" "$tmp/$kind.got"
done
is 'a broken container has the same reason' "$(refusal "$tmp/node0")" "$broken"
ok 'broken ones are left out' dealfs index "$tmp/node2" --output "$tmp/broken.got" --under broken --skip-broken
ok 'and only they' cmp "$tmp/broken.alone" "$tmp/broken.got"
like 'no file has this number' "$(request 0 /dev/null index file=4000000)" 'must be the number of a file'

# --- owners that are in trouble ---
indexes() { # what, node
    ok "$1" dealfs index "$tmp/node$2" --output "$tmp/lines.got" --under lines
    ok "$1: the same lines" cmp "$tmp/lines.alone" "$tmp/lines.got"
}
forget() { # what node 1 has read, by mounting again
    world_leave
    ok 'umount node 1' world_drop 1
    rm -rf "$tmp/state1"
    DEALFS_SOURCE_FAULTS="file=$faults" ok 'mount it again' dealfs mount -o "state=$tmp/state1,$world_default" "$src" \
        "$tmp/node1"
    ok 'join' world_join 0 1 2
}
forget
set_faults errno=EIO
indexes 'while an owner cannot read its source' 0
set_faults ''
forget
set_faults delay=2500
DEALFS_INDEX_PATIENCE=1 indexes 'while an owner is slow' 0
set_faults ''
server=$(pid_of 1 server)
kill -STOP "$server"
indexes 'while an owner is stopped' 0
kill -CONT "$server"
(while :; do
    pid=$(pid_of 1 server)
    [ -z "$pid" ] || [ "$pid" = "$server" ] || kill -9 "$pid"
    server=$pid
    dealfs wait --timeout 3600 "$tmp/node1" || break
done) 2>/dev/null &
killer=$!
for ((i = 0; i < 5; i++)); do indexes "while the server of an owner dies repeatedly, $i" 0; done
kill "$killer"
wait "$killer" 2>/dev/null
world_leave
indexes 'when the world has ended' 0
ok 'join' world_join 0 1 2
indexes 'in the next world' 2
ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
