#!/bin/bash
# State and shards are found again by user and source: by the next job, at any mountpoint, also if another user has the
# source mounted.
#
# In a mount namespace of its own: one made from ours meanwhile would keep copies of our mounts alive.
if [ -z "${WARM_NAMESPACE-}" ] && unshare -m true 2>/dev/null; then
    WARM_NAMESPACE=1 exec unshare -m bash "$0" "$@"
fi
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require flock setpriv
src=$tmp/src ssd=$tmp/ssd
make_files "$src" 40 50000
files=40
mkdir "$ssd"
options=ssd=$ssd,ram=0
shards() { find "$ssd" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' '; }
opened() { value "$1" source.samples; }
same_bytes() { diff -r -x .dealfs "$src" "$1"; }
ends() { mountpoint -q "$1" && dealfs umount "$1"; }
up() { mkdir -p "${!#}" && dealfs mount "$@" && at_exit ends "${!#}"; }

# --- jobs with directories of their own, which go with them ---
for job in 1 2 3; do
    mkdir "$tmp/job$job"
    ok "job $job mounts" env SLURM_TMPDIR="$tmp/job$job" \
        dealfs mount -o "$options" "$src" "$(mkdir "$tmp/mnt$job" && echo "$tmp/mnt$job")"
    at_exit ends "$tmp/mnt$job"
    ok 'it reads' same_bytes "$tmp/mnt$job"
    is 'from the source only the first time' "$(opened "$tmp/mnt$job")" $((job == 1 ? files : 0))
    ok 'a cleaner of directories sees that the shard is in use' \
        test -z "$(cd "$ssd" && for s in *; do flock -n "$s" echo "$s"; done)"
    ok 'unmount' dealfs umount "$tmp/mnt$job"
    rm -r "$tmp/job$job"
done
like 'they had one shard' "$(shards)" '^dealfs-[0-9a-f]{16}\.0 $'
name=$(shards) name=${name%.0 }

# --- several mounts of one source, in turn ---
id_of() { value "$1" id; }
ok 'mount' up -o "$options" "$src" "$tmp/a"
ok 'and at another place' up -o "$options" "$src" "$tmp/b"
a=$(id_of "$tmp/a") b=$(id_of "$tmp/b")
isnt 'they are two nodes' "$a" "$b"
is 'the first has the warm shard' "$(same_bytes "$tmp/a" && opened "$tmp/a")" 0
ok 'the other fills its own' same_bytes "$tmp/b"
is 'which are two' "$(shards)" "$name.0 $name.1 "
ok 'unmount' dealfs umount "$tmp/a"
ok 'both' dealfs umount "$tmp/b"
ok 'mount the other first' up -o "$options" "$src" "$tmp/b"
is 'it is who it was' "$(id_of "$tmp/b")" "$b"
is 'and has what it had' "$(same_bytes "$tmp/b" && opened "$tmp/b")" 0
ok 'a third place' up -o "$options" "$src" "$tmp/c"
is 'has what is free' "$(id_of "$tmp/c")" "$a"
is 'and warm' "$(same_bytes "$tmp/c" && opened "$tmp/c")" 0
ok 'unmount' dealfs umount "$tmp/b"
ok 'both' dealfs umount "$tmp/c"
rm -r "$ssd/$name.0"
ok 'the first shard is gone: mount' up -o "$options" "$src" "$tmp/a"
is 'one that is there goes before a new one' "$(shards)" "$name.1 "
ok 'unmount' dealfs umount "$tmp/a"

# --- many at once ---
pids=()
for i in 0 1 2 3; do
    mkdir "$tmp/many$i"
    at_exit ends "$tmp/many$i"
    dealfs mount -o "$options" "$src" "$tmp/many$i" >"$tmp/many$i.log" 2>&1 </dev/null &
    pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do wait "$pid" || failed=$((failed + 1)); done
is 'four that start at once all mount' $failed 0
is 'as four nodes' "$(for i in 0 1 2 3; do id_of "$tmp/many$i"; done | sort -u | wc -l)" 4
is 'with four shards' "$(shards)" "$name.0 $name.1 $name.2 $name.3 "
for i in 0 1 2 3; do
    ok "number $i reads" same_bytes "$tmp/many$i"
    ok 'unmount' dealfs umount "$tmp/many$i"
done

# --- what is not ours is left alone ---
rm -r "${ssd:?}"/*
mkdir "$ssd/$name.0" "$ssd/empty"
echo precious >"$ssd/$name.0/file"
chown -R 65534 "$ssd/$name.0"
ln -s empty "$ssd/$name.1"
mkfifo "$ssd/$name.2"
ok "another user's folder, a symlink and a FIFO stand in the way" up -o "$options" "$src" "$tmp/a"
ok 'it reads' same_bytes "$tmp/a"
is 'into a folder of its own' "$(shards)" "$name.0 $name.1 $name.2 $name.3 empty "
is 'the others are as they were' "$(find "$ssd/$name.0" "$ssd/empty" -mindepth 1 -printf '%P ')" 'file '
ok 'unmount' dealfs umount "$tmp/a"
rm -r "${ssd:?}"/*
state=$(echo "$tmp"/dealfs-*.0)
rm "$state/config" && mkfifo "$state/config"
ok 'a FIFO in the place of the configuration' dealfs mount -o "$options" "$src" "$tmp/a"
ok 'unmount' dealfs umount "$tmp/a"

# --- a shard that is damaged so that RocksDB aborts costs what is damaged, and no mount ---
damage() { # where
    python3 - "$1" "$ssd"/*/db-2 <<'END'
import glob, sys
def flip(path, find):
    with open(path, 'r+b') as file:
        data = bytearray(file.read())
        data[find(data)] ^= 0x40
        file.seek(0)
        file.write(data)
if sys.argv[1] == 'footer':
    find = lambda data: len(data) - 50
else:
    find = lambda data: data.rfind(b'dealfsIX') + 20
    flip(sys.argv[2] + '/CURRENT', lambda data: 3)
flip(sorted(glob.glob(sys.argv[2] + '/*.sst'))[0], find)
END
}
rm -r "${ssd:?}"/*
for where in record footer; do
    ok 'mount' up -o "$options" "$src" "$tmp/a"
    ok 'stage' dealfs stage "$tmp/a"
    ok 'unmount' dealfs umount "$tmp/a"
    ok "damage the shard: a segment's $where" damage $where
    ok 'mount it' up -o "$options" "$src" "$tmp/a"
    ok 'every byte is right' same_bytes "$tmp/a"
    ok 'at most one server died' test "$(value "$tmp/a" restarts.count)" -le 1
    is 'the tier is open' "$(value "$tmp/a" ssd.state)" open
    ok 'unmount' dealfs umount "$tmp/a"
done

# --- a name in the place of the source ---
rm -r "${ssd:?}"/*
ok 'mount with a name' up -o "$options,cache_id=pets v1" "$src" "$tmp/a"
ok 'it reads' same_bytes "$tmp/a"
ok 'unmount' dealfs umount "$tmp/a"
mv "$src" "$tmp/moved" && src=$tmp/moved
ok 'mount what has moved' up -o "$options,cache_id=pets v1" "$src" "$tmp/a"
is 'it is warm' "$(same_bytes "$tmp/a" && opened "$tmp/a")" 0
ok 'unmount' dealfs umount "$tmp/a"
ok 'mount under another name' up -o "$options,cache_id=pets v2" "$src" "$tmp/a"
is 'that is cold' "$(same_bytes "$tmp/a" && opened "$tmp/a")" $files
ok 'unmount' dealfs umount "$tmp/a"
exits 2 'a name is needed' dealfs mount -o cache_id= "$src" "$tmp/a"

# --- one who takes a while to end is waited for, so that the next has its state ---
ok 'mount' up "$src" "$tmp/a"
a=$(id_of "$tmp/a")
keeper=$(value "$tmp/a" pids.keeper)
kill -STOP "$keeper"
dealfs umount --lazy "$tmp/a" >"$tmp/umount.log" 2>&1 </dev/null &
umount=$!
wait_for sh -c "! mountpoint -q '$tmp/a'"
(wait_for test -e "$tmp/mounting"; kill -CONT "$keeper") &
: >"$tmp/mounting"
ok 'mount again' up "$src" "$tmp/a"
is 'it is who it was' "$(id_of "$tmp/a")" "$a"
wait $umount
ok 'unmount' dealfs umount "$tmp/a"

# --- a mount that another namespace holds on to is in nobody's way ---
ok 'mount' up "$src" "$tmp/a"
unshare -m sh -c ': >"$1"; exec sleep infinity' - "$tmp/held" &
holder=$!
tap_pids+=("$holder")
wait_for test -e "$tmp/held"
ok 'unmount' dealfs umount --lazy "$tmp/a"
ok 'it goes on there' nsenter -t "$holder" -m mountpoint -q "$tmp/a"
export DEALFS_STATE_PATIENCE=0 # its state stays in use
ok 'mount again' up "$src" "$tmp/a"
unset DEALFS_STATE_PATIENCE
ok 'it reads' same_bytes "$tmp/a"
kill "$holder" && wait "$holder" 2>/dev/null
one_keeper() { [ "$(processes dealfs-keeper | wc -l)" = 1 ]; }
ok 'the old one ends' wait_for one_keeper
ok 'and takes nothing of the new one along' same_bytes "$tmp/a"
ok 'unmount' dealfs umount "$tmp/a"

# --- nodes of one machine, with states that nobody has named ---
if [ -x "$top_builddir/dealfs-courier" ] && command -v mpirun >/dev/null; then
    rm -r "${ssd:?}"/*
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    mkdir "$tmp/node0" "$tmp/node1"
    words=()
    for time in 1 2; do
        : >"$tmp/world.log"
        mpirun --oversubscribe --bind-to none -n 2 \
            dealfs mount "${words[@]}" -o "$options" "$src" "$tmp/node%r" >"$tmp/world.log" 2>&1 </dev/null &
        world=$!
        at_exit ends "$tmp/node0"
        at_exit ends "$tmp/node1"
        ok "a world of two, time $time" wait_for grep -qx ready "$tmp/world.log" || diag "$(cat "$tmp/world.log")"
        ids[time]="$(id_of "$tmp/node0") $(id_of "$tmp/node1")"
        ok 'it reads' same_bytes "$tmp/node0"
        is 'the source is read once' $(($(opened "$tmp/node0") + $(opened "$tmp/node1"))) $((time == 1 ? files : 0))
        ok 'unmount all' dealfs umount --world "$tmp/node0"
        ok 'the world ends' wait_for sh -c "! kill -0 $world"
        ok 'mount(8) has no note of it' wait_for no_notes
        for i in {1..2100}; do words+=(-o x-); done # mounts of any number of words
    done
    is 'each was who it was' "${ids[2]}" "${ids[1]}"
else
    skip 13 'no Open MPI'
fi
nothing_left
done_testing
