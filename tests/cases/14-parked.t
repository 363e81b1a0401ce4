#!/bin/bash
# Hundreds of readers parked on a source that does not answer, while the mount is used, its server killed, the mount
# taken away: what is kept is read beside them, and each of them gets its own bytes in the end.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
src=$tmp/src mnt=$tmp/mnt faults=$tmp/faults readers=256
make_files "$src" 64 100000
mkdir "$src/slow"
for ((i = 0; i < readers; i++)); do head -c 20000 /dev/urandom >"$src/slow/$i"; done
export DEALFS_SOURCE_FAULTS="file=$faults"

parked() {
    [ "$(cat "$mnt/.dealfs/status" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["parked"])')" = "$1" ]
}
start_crowd() { # they are parked in the server, not on the way to it
    set_faults 'hang=slow/*'
    background python3 "$top_srcdir/tests/lib/crowd.py" "$src" "$mnt" $readers >"$tmp/crowd.log" 2>&1
    crowd=$!
    wait_for parked $readers
}
crowd_blocked() {
    kill -0 "$crowd" &&
        [ "$(find "/proc/$crowd/task" -mindepth 1 -maxdepth 1 | wc -l)" = $((readers + 1)) ]
}
crowd_ends() {
    wait_for has_ended "$crowd" || return 1
    wait "$crowd" && return
    cat "$tmp/crowd.log"
    return 1
}
# Past the page cache, so that every one of them is asked of the server.
kept_is_read() {
    local file
    for file in "$mnt"/class*/*.bin; do
        dd if="$file" iflag=direct bs=1M status=none | cmp - "$src/${file#"$mnt"/}" || return 1
    done
}
# Staging stores its last segment as well, so that it outlives a server; the others cannot be staged meanwhile.
store_classes() {
    set_faults 'errno=EIO,match=slow/*'
    fails 'stage what can be read' dealfs stage "$mnt"
    set_faults ''
}
at_exit set_faults ''

set_faults ''
ok 'mount' mount_up "$src" "$mnt"
find "$mnt" -path "$mnt/class*" -type f -exec cat {} + >/dev/null

ok "$readers readers are parked" start_crowd
before=$(answered "$mnt" ram)
ok 'what is kept is read beside them' kept_is_read
from_ram() { [ $(($(answered "$mnt" ram) - before)) -ge 6400000 ]; }
ok 'by the server, from the RAM tier' wait_for from_ram
ok 'names and attributes, too' ls -lR "$mnt"
ok 'where' dealfs where "$mnt" slow/0 class0/000.bin
ok 'all of them are parked still' parked $readers
ok 'and nobody has got anything' crowd_blocked
set_faults ''
ok 'the source answers: each gets its bytes' crowd_ends
ok 'nobody is parked any more' wait_for parked 0
ok 'unmount' dealfs umount "$mnt"

# The server is killed while they are parked, repeatedly: they are not what kills it.
ok 'mount' dealfs mount "$src" "$mnt"
store_classes
ok "$readers readers are parked" start_crowd
for i in 1 2 3 4 5; do
    server=$(value "$mnt" pids.server)
    kill -9 "$server"
    ok "kill $i of the server: they are parked in the next one" wait_for parked $readers
    isnt 'which is another' "$(value "$mnt" pids.server)" "$server"
done
ok 'nobody has got anything' crowd_blocked
ok 'what is kept is read beside them' kept_is_read
server=$(value "$mnt" pids.server)
kill -9 "$server"
set_faults ''
ok 'one more, and the source answers: each gets its bytes' crowd_ends
is 'no read has failed' "$(value "$mnt" errors)" '{}'
ok 'the mount is whole' kept_is_read
ok 'unmount' dealfs umount "$mnt"

# The keeper is killed while they are parked: the server stays, and gets a new one.
ok 'mount' dealfs mount "$src" "$mnt"
ok "$readers readers are parked" start_crowd
ok 'kill of the keeper: there is another' restart "$mnt" keeper
kill -9 "$(value "$mnt" pids.server)"
ok 'which starts the next server: they are parked in it' wait_for parked $readers
set_faults ''
ok 'each gets its bytes' crowd_ends
ok 'unmount' dealfs umount "$mnt"

# The mount is taken away while they are parked.
for variant in 'dealfs umount --lazy' 'umount -l'; do
    ok "$variant: mount" dealfs mount "$src" "$mnt"
    ok "$variant: $readers readers are parked" start_crowd
    fails "$variant: without it the mount is busy" dealfs umount "$mnt"
    ok "$variant: which took nothing away" parked $readers
    # shellcheck disable=SC2086
    ok "$variant: goes at once" $variant "$mnt"
    fails "$variant: not mounted any more" mounted "$mnt"
    ok "$variant: those inside wait" crowd_blocked
    server=$(processes dealfs-server | head -1)
    ok "$variant: the server is killed" kill -9 "$server"
    next_server() { processes dealfs-server | grep -vx "$server"; }
    ok "$variant: there is another" wait_for next_server
    ok "$variant: they wait still" crowd_blocked
    set_faults ''
    ok "$variant: each gets its bytes" crowd_ends
    nothing_left "$variant: nothing is left"
done

# Readers that are killed while they are parked let go of the mount.
ok 'mount' dealfs mount "$src" "$mnt"
ok "$readers readers are parked" start_crowd
kill -9 "$crowd"
ok 'they can be killed' wait_for has_ended "$crowd"
ok 'unmount' dealfs umount "$mnt"
nothing_left
done_testing
