#!/bin/bash
# Everybody else goes before the feeder, whom a program of this test plays: hundreds of files that are asked ahead of a
# source that is slow, fails or hangs delay nobody and hurt nobody but who asks for these very files; a server that is
# killed takes them up again; and its memory has room for all of them.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults
python3 - "$src" <<'END'
import os, sys
for folder, files, size in [('many', 700, 20000), ('other', 40, 50000), ('fails', 20, 20000), ('hangs', 40, 20000),
                            ('killed', 200, 20000), ('tiny', 30, 3000)]:
    os.makedirs(f'{sys.argv[1]}/{folder}')
    for i in range(files):
        with open(f'{sys.argv[1]}/{folder}/{i}', 'wb') as f:
            f.write(os.urandom(size))
END
truncate -s 96M "$src/large"
export DEALFS_SOURCE_FAULTS="file=$faults"
at_exit set_faults ''

as_feeder() { "$top_builddir/tests/fs/server/as-feeder" "$(value "$mnt" pids.server)" "$@"; }
# All of a folder's files, without waiting for their bytes.
feed() { # paths below the mount
    : >"$tmp/asks.log"
    (cd "$mnt" && exec "$top_builddir/tests/fs/server/as-feeder" "$server" \
        python3 "$top_srcdir/tests/lib/asks.py" "$@") >"$tmp/asks.log" 2>&1 &
    feeder=$!
    tap_pids+=("$feeder")
    wait_for grep -q asked "$tmp/asks.log"
}
feeder_ends() { kill "$feeder" && wait "$feeder"; } 2>/dev/null
files_of() { find "$src/$1" -type f -printf "$1/%f\n"; }
# Threads of the data mount with this scheduling policy: 0, the usual one, or 3, SCHED_BATCH.
has_policy() { [ -n "$(awk -v policy="$1" '$2 == "(data)" && $41 == policy' "/proc/$server/task"/*/stat)" ]; }
waits() { [ "$(value "$mnt" fed.waits.source)" = "$1" ]; }
same_file() { cmp "$src/$1" "$mnt/$1"; }
same_folder() {
    local file
    for file in $(files_of "$1"); do
        [ "$file" = "${2-}" ] || same_file "$file" || return 1
    done
}

set_faults ''
ok 'mount' mount_up -o ram=64M "$src" "$mnt"
server=$(value "$mnt" pids.server)
ok 'a file is held' same_file hangs/0

# --- an unrelated read, of a source that lets nothing of it through ---
set_faults 'hang=many/*'
# shellcheck disable=SC2046
ok '700 files are asked ahead' feed $(files_of many)
ok 'all of them wait for the source' wait_for waits 700
ok 'threads that answered the feeder do not preempt loaders' wait_for has_policy 3
ok 'files that nobody asked ahead are read meanwhile' same_folder other
ok 'so is what is held' same_file hangs/0
ok 'threads that answered others since then may' wait_for has_policy 0
ok 'while all that is fed waits' waits 700
is 'nothing of it has been fed' "$(value "$mnt" fed.reads.source)" 0
is 'readers are counted apart' "$(value "$mnt" reads.source)" 41
is 'none of them waits' "$(value "$mnt" parked)" 0
set_faults 'delay=30,delay_match=many/*'
ok 'also while a slow source gives it' same_file tiny/0
set_faults ''
ok 'it comes' wait_for waits 0
counted() { echo "$(value "$mnt" fed.reads.source) $(value "$mnt" fed.bytes.source)"; }
all_counted() { [ "$(counted)" = "$1" ]; } # an answer is counted when it has been sent
wait_for all_counted '700 14000000'
is 'as fed, with its bytes' "$(counted)" '700 14000000'
ok 'and is right' same_folder many
is 'no reader has asked the source for it' "$(value "$mnt" reads.source)" 42
like 'metrics' "$(cat "$mnt/.dealfs/metrics")" 'dealfs_fed_reads_total\{from="source"\} 700'
feeder_ends

# --- a source that fails ---
set_faults 'errno=EIO,match=fails/3'
# shellcheck disable=SC2046
ok 'files are asked ahead of a source that fails for one' feed $(files_of fails)
ok 'all are answered' wait_for waits 0
ok 'others hear nothing of it' same_folder fails fails/3
fails 'who reads that one does' cat "$mnt/fails/3"
is 'the feeder did, too' "$(value "$mnt" fed.errors)" 1
set_faults ''
ok 'until it is there again' same_file fails/3
feeder_ends

# --- a source that hangs for one ---
set_faults 'hang=hangs/3'
# shellcheck disable=SC2046
ok 'files are asked ahead of a source that hangs for one' feed $(files_of hangs)
ok 'the others are fed' wait_for waits 1
ok 'and read' same_folder hangs hangs/3
ok 'while that one waits' waits 1
set_faults ''
ok 'and then comes' same_file hangs/3
feeder_ends

# --- a server that is killed ---
set_faults 'hang=killed/*'
# shellcheck disable=SC2046
ok 'files are asked ahead of a source that hangs' feed $(files_of killed)
ok 'all wait' wait_for waits 200
kill -9 "$server"
ok 'after the death of the server all wait in the next one' wait_for waits 200
ok 'where others are read' same_file tiny/1
set_faults ''
ok 'they come' wait_for waits 0
ok 'and are right' same_folder killed
feeder_ends
server=$(value "$mnt" pids.server)

# --- a feeder that is none ---
ok 'what is taken for the feeder and reads as a reader does gets its bytes' as_feeder cmp "$src/tiny/2" "$mnt/tiny/2"
ok 'also many of them' as_feeder diff -r "$src/tiny" "$mnt/tiny"
is 'no read has failed but that one' "$(value "$mnt" errors)" '{"EIO": 1}'
ok 'unmount' dealfs umount "$mnt"

# --- memory ---
fill() { cat "$mnt"/many/* >/dev/null; }
if [ -n "${TEST_SANITIZER-}" ]; then
    skip 11 'sanitizers need more memory'
elif memory_group $((96 << 20)); then
    ok 'mount with 64 MiB beside the tier' in_group dealfs mount -o ram=32M "$src" "$mnt"
    at_exit dealfs umount "$mnt"
    server=$(value "$mnt" pids.server)
    like 'the server is in the group' "$(cat "/proc/$server/cgroup")" "dealfs-test-$$"
    ok 'fill the tier' fill
    drop_cache "$mnt"/many/1
    set_faults 'hang=large'
    ok '96 MiB are asked ahead of a source that hangs' feed large
    ok 'all of it waits' wait_for waits 768
    ok 'what is held is read' same_file many/1
    set_faults ''
    ok 'it comes' wait_for waits 0
    diag "of 96 MiB at most $(cat "$group"/memory.{peak,max_usage_in_bytes} 2>/dev/null) bytes were in use"
    is 'the server lives' "$(value "$mnt" pids.server)" "$server"
    ok 'and what was fed is right' same_file large
    feeder_ends
    ok 'unmount' dealfs umount "$mnt"
    ok 'all processes of it end' wait_for group_is_empty
else
    skip 11 'no memory control group can be made'
fi
nothing_left 'nothing is left'
done_testing
