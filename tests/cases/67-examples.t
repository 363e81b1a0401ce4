#!/bin/bash
# Each manual page has at least two examples, and each example works.
#
# Of a page of section 1 each line between .EX and .EE under EXAMPLES is an example; of section 5 each such block is.
# An example runs as it stands there, except for this:
#   - /data, /nvme and /tmp are directories of this test. /data/imagenet is a small dataset.
#   - 16 nodes are 2, both on this machine. So /mnt/imagenet is $tmp/node0, and of mpirun $tmp/node%r.
#   - `srun` is mpirun; `python` and `torchrun` read all of the mount; the user of the Slurm job is `nobody`.
#   - What runs until it is stopped (`&`, `top`, `--follow`) is stopped when it has printed something.
# `needs` says which mount an example needs; the test makes it before.
if [ -z "${EXAMPLES_NAMESPACE-}" ] && unshare -m true 2>/dev/null; then # `dealfs clean` cleans the whole machine
    case ${TMPDIR-} in /var/tmp* | /dev/shm*) export TMPDIR=/tmp ;; esac
    EXAMPLES_NAMESPACE=1 exec unshare -m bash "$0" "$@"
fi
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require_root
[ -z "${EXAMPLES_NAMESPACE-}" ] || umount -ilat fuse.dealfs # here only: other tests' mounts
[ -n "${EXAMPLES_NAMESPACE-}" ] && mount -t tmpfs tmpfs /var/tmp && mount -t tmpfs tmpfs /dev/shm ||
    plan_skip 'no mount namespace'
chmod 1777 /var/tmp /dev/shm

# --- the dataset, and the programs that stand in for others ---
imagenet=$tmp/data/imagenet
mkdir -p "$imagenet"/{train/n0144076{3,4},shards} "$tmp"/{node0,node1,nvme,tmp/imagenet,bin}
chmod 1777 "$tmp" "$tmp/tmp"
for i in $(seq 800); do
    echo "$i" >"$imagenet/train/n01440763/$i.JPEG"
    echo "$i" >"$imagenet/train/n01440764/n01440764_$((10025 + i)).JPEG"
done
tar -C "$imagenet" -cf "$tmp/a.tar" train/n01440763
mv "$tmp/a.tar" "$imagenet/shards"
head -c 40960 /dev/urandom >"$imagenet/tokens.bin"
python3 -c 'import array, sys; array.array("I", range(1602)).tofile(sys.stdout.buffer)' >"$tmp/data/order.u32"
cat >"$tmp/bin/python" <<'END2'
#!/bin/bash
find "${!#}" -name .dealfs -prune -o -type f -exec cat {} + | wc -c
END2
cat >"$tmp/bin/srun" <<'END2'
#!/bin/bash
while [[ $1 == --* ]]; do shift; done
exec mpirun -n 2 --oversubscribe --bind-to none "$@"
END2
cp "$tmp/bin/python" "$tmp/bin/torchrun"
chmod +x "$tmp"/bin/*
export PATH=$tmp/bin:$PATH SLURM_JOB_USER=nobody
cd "$tmp" || exit 99

# --- mounts ---
world_default=ram=64M,exchange
state=''
down() {
    local i
    [ "$state" != run ] || ! kill "$running" || wait "$running"
    for i in 0 1; do ! mounted "$tmp/node$i" || dealfs umount "$tmp/node$i"; done
    [ -z "$world_pid" ] || { kill "$world_pid"; wait_for world_gone; } 2>/dev/null
    state='' world_pid=''
}
up() {
    mounted "$tmp/node0" || [ "$state" != world ] || down
    [ "$state" != "$1" ] || return 0
    down
    state=$1
    case $1 in
    run)
        dealfs run -o ram=64M "$imagenet" "$tmp/tmp/imagenet" -- sleep infinity >"$tmp/up" 2>&1 &
        running=$!
        tap_pids+=("$running")
        wait_for dealfs enter "$tmp/tmp/imagenet" -- true >>"$tmp/up" 2>&1
        ;;
    world) world_mount 2 "$imagenet" && dealfs plan "$tmp/node0" epoch=3 ranks=2 batch=32 feed=yes >"$tmp/up" ;;
    esac
}
needs() { # a page: nothing, a mount by `dealfs run`, or a world of two nodes
    case $1 in
    dealfs | *-mount | *-run | *-launch | *-clean | *-mounter | *-demo | *-doctor | *-simulate) ;;
    *-enter) echo run ;;
    *) echo world ;;
    esac
}

# --- examples ---
examples() { # of a page; each ends with a NUL
    local blocks=0
    [[ $1 == *.1 ]] || blocks=1
    sed -n '/^\.SH EXAMPLES/,/^\.SH [^E]/p' "$1" | awk -v blocks=$blocks '
        /^\.EX/ { within = 1; text = ""; next }
        /^\.EE/ { within = 0; if (blocks) printf "%s%c", text, 0 }
        within {
            gsub(/\\-/, "-"); gsub(/\\\(aq/, "\047"); gsub(/\\&/, "")
            continued = /\\e$/
            gsub(/\\e/, "\\")
            text = text $0 "\n"
            if (!blocks && !continued) { printf "%s%c", text, 0; text = "" }
        }'
}
placed() { # an example, with the paths of this test
    sed -E "s#(^|[ '\"=<>(])/(data|nvme|tmp)\>#\1@/\2#g
        /mpirun|srun/s#/mnt/imagenet#@/node%r#; s#/mnt/imagenet#@/node0#g
        s/-n 16 --map-by ppr:1:node/-n 2 --oversubscribe --bind-to none/; s/nodes 16/nodes 2/; s#@/#$tmp/#g" <<<"$1"
}
stopped() { # what runs until it is stopped: it prints, and SIGTERM ends it
    local pid status=0
    : >"$tmp/printed" # it has what the last one printed
    bash -c "exec $1" >"$tmp/printed" 2>&1 </dev/null &
    pid=$!
    tap_pids+=("$pid")
    wait_for test -s "$tmp/printed" || { echo 'it prints nothing'; return 1; }
    kill "$pid"
    wait "$pid" || status=$?
    [ "$status" = 0 ] || [ "$status" = 143 ] || { cat "$tmp/printed"; return 1; }
}
begun() { # a world: it is ready, and its launcher ends in order
    : >"$tmp/world.log" # the last world said "ready"
    bash -c "exec ${1%&*}" >"$tmp/world.log" 2>&1 </dev/null &
    world_pid=$!
    world_count=2
    world_await && state=world
}
compiled() {
    printf '#include <%s.h>\n' errno fcntl stdio string unistd >"$tmp/example.c"
    printf 'int main(void)\n{\n%s    return n < 0;\n}\n' "$1" >>"$tmp/example.c"
    ${CC:-cc} -o "$tmp/example" "$tmp/example.c" && "$tmp/example"
}
run() {
    case $1 in
    'dealfs mounter '*) stopped "${1%&*}" ;;
    *\&$'\n') begun "$1" ;;
    *'dealfs top '*[!n] | *--follow*) stopped "$1" ;;
    def* | import*) PYTHONPATH=$top_srcdir/etc/python python3 -c "$1" ;;
    char*) compiled "$1" ;;
    *) bash -c "$1" </dev/null ;;
    esac
}
permitted() { # also a status that is about other things of this machine
    run "$1"
    local status=$?
    [[ $1$status == 'dealfs doctor'*1 || $1$status == $'dealfs status\n'[34] ]] || return "$status"
}

demos=()
for page in "$top_srcdir"/cli/*.[15]; do
    name=${page##*/}
    mapfile -d '' -t all < <(examples "$page")
    ok "$name has examples" test ${#all[@]} -ge 2
    for example in "${all[@]}"; do
        example=$(placed "$example")$'\n'
        case $example in
        *'dealfs demo'*)
            demo=$tmp/demo${#demos[@]} # its status goes into a file: the shell may forget a child that ended long ago
            { bash -c "$example" >"$demo.log" 2>&1 </dev/null; echo $? >"$demo.status"; } &
            demos+=("$demo")
            continue
            ;;
        *mpirun*join* | *srun*join*) up world && world_leave ;;
        'dealfs mount'* | 'dealfs run'* | 'dealfs launch'* | *mpirun*) down ;;
        esac
        need=$(needs "${name%.[15]}")
        [ -z "$need" ] || up "$need" || diag "no $need: $(cat "$tmp/up" "$tmp/world.log" 2>/dev/null)"
        ok "$name: ${example%%$'\n'*}" permitted "$example"
    done
done
down
for demo in "${demos[@]}"; do
    wait_for test -s "$demo.status"
    is "dealfs-demo.1: ${demo##*/}" "$(cat "$demo.status")" 0
done
nothing_left
done_testing
