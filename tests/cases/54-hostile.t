#!/bin/bash
# What other users than the mount's owner do to the control files, and requests that would take all memory.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require python3
require setpriv
chmod 755 "$tmp"
src=$tmp/src mnt=$tmp/mnt
dealfs=$mnt/.dealfs
as_other=(setpriv --reuid=33 --regid=33 --clear-groups)
other() { "${as_other[@]}" "$@"; }
server() { awk "/^$1:/ { print \$2 }" "/proc/$(value "$mnt" pids.server)/status"; } # a size, KiB
large='epoch=0,ranks=1,batch=64,echo=1000,echo_at=batch' # 20,000,000 entries

python3 - "$src" <<'END'
import os, sys
for d in range(20):
    os.makedirs(f'{sys.argv[1]}/class{d:02}')
    for i in range(1000):
        os.close(os.open(f'{sys.argv[1]}/class{d:02}/{i:03}', os.O_CREAT | os.O_WRONLY))
END
chmod 700 "$src/class07"
ok 'mount' mount_up -o allow_other,ram=16M,request_memory=8M "$src" "$mnt"

# --- names that somebody may not know ---
ok 'others read' other cat "$mnt/class00/000"
fails 'but not what is private' other ls "$mnt/class07"
for file in samples samples.d samples.d/all errors control plan plan/epoch=0,ranks=1,batch=1; do
    fails "nor $file" other cat "$dealfs/$file"
    fails "nor stat what is in $file" other stat "$dealfs/$file/x"
done
is 'nor open what the owner has seen' "$(cat "$dealfs/plan/epoch=0,ranks=1,batch=1,order=natural" | wc -l
    other cat "$dealfs/plan/epoch=0,ranks=1,batch=1,order=natural" 2>/dev/null)" 1
for file in status metrics nodes node; do
    ok "they read $file" other cat "$dealfs/$file"
done

# --- memory ---
made=$(value "$mnt" plans.made) before=$(server VmHWM)
for echo in 1000 999.5 500; do
    fails 'a stat of another user' other stat "$dealfs/plan/epoch=0,ranks=1,batch=64,echo=$echo,echo_at=batch"
done
is 'plans nothing' "$(value "$mnt" plans.made)" "$made"
refused() { # what, errno's name, regex, errors' line
    like "$1: in errors by its name, with the reason" "$(tail -1 "$dealfs/errors")" "$2"
}
for way in "$large" "${large/batch=64/batch=1}" "${large/_at=batch/_at=example}" "${large/ranks=1/ranks=7}"; do
    fails 'a plan beyond request_memory=' stat "$dealfs/plan/$way"
    refused "$way" 'ENOMEM: it takes at least [0-9.]+ MiB.* may use 8 MiB \(request_memory=\)'
done
is 'was not made' "$(value "$mnt" plans.made)" "$made"
ask() { # how many bytes of which character, first line: the reply's size, or the errno
    python3 - "$dealfs/control" "$@" <<'END'
import errno, os, sys
fd, left, piece = (os.open(sys.argv[1], os.O_RDWR), int(sys.argv[2]),
                   sys.argv[3].encode().decode('unicode_escape').encode() * 65536)
try:
    os.write(fd, sys.argv[4].encode() + b'\n')
    while left > 0:
        left -= os.write(fd, piece[:left])
    n = 0
    while got := os.read(fd, 1 << 20):
        n += len(got)
    print(n)
except OSError as e:
    print(errno.errorcode[e.errno])
END
}
is 'a reply that is larger than its request' "$(ask 6000000 '\0' 'where sep=nul')" ENOMEM
refused 'where' 'where sep=nul.*ENOMEM: it takes'
is 'a longer upload' "$(ask 9000000 '\0' 'where sep=nul')" ENOMEM
refused 'upload' 'where sep=nul.*ENOMEM: it takes'
is 'a list of as many paths' "$(ask 6000000 '\n' 'samples name=x')" ENOMEM
is 'one long path' "$(ask 6000000 'a\\' 'samples name=x')" ENOENT
is 'an order of as many entries' "$(ask 7000000 '0 ' 'plan epoch=0 ranks=1 batch=1 order=text distinct=no')" ENOMEM
is 'what fits is answered' "$(ask 600000 '\0' 'where sep=nul')" 4200000
ok 'a plan that fits is made' cat "$dealfs/plan/epoch=0,ranks=4,batch=8,echo=10,rank=1"
for epoch in 1 2 3 4 5; do
    cat "$dealfs/plan/epoch=$epoch,ranks=4,batch=8,echo=10,rank=1" >/dev/null || fail "epoch $epoch"
done
is 'and others, as what is kept gives way' "$(value "$mnt" plans.made)" $((made + 6))
after=$(server VmHWM)
if [ -n "${TEST_SANITIZER-}" ]; then
    skip 1 'a sanitizer keeps what was freed'
else
    ok "the server took little more: $before KiB, then $after" test $((after - before)) -lt $((24 << 10))
fi

# --- handles ---
mkfifo "$tmp/go"
exec 5<>"$tmp/go"
# shellcheck disable=SC2016
other bash -c 'n=0; while exec {fd}<"$1"; do n=$((n + 1)); done; echo $n; read -r' hold "$dealfs/node" \
    <"$tmp/go" >"$tmp/held" 2>"$tmp/held.error" 5>&- &
holder=$!
ok 'another user opens a file as often as can be' wait_for test -s "$tmp/held"
is 'which is bounded' "$(cat "$tmp/held")" 512
like 'by the mount' "$(cat "$tmp/held.error")" 'Too many open files in system'
like 'and in errors' "$(tail -1 "$dealfs/errors")" '33.*open node.*ENFILE: too many files'
is 'the owner asks as before' "$(ask 0 x 'stage action=look' | grep -c '^[0-9]')" 1
ok 'also for a list' cat "$dealfs/samples"
kill $holder
wait $holder 2>/dev/null
exec 5>&-
ok 'unmount' dealfs umount "$mnt"

# --- long requests: the tree is everybody's now ---
chmod 755 "$src/class07"
ok 'mount' mount_up -o allow_other,ram=16M,request_memory=512M "$src" "$mnt"
ok 'others read what names all files' other cat "$dealfs/samples"
slow=ranks=1,batch=1,echo=500,reply=summary # some seconds each
# In a system call on a name of the mount: it waits for its answer.
waits() { local pid; for pid; do read -r call _ <"/proc/$pid/syscall" && [ "$call" = "$call_open" ] || return 1; done; }
call_open=$(python3 -c 'import platform; print(257 if platform.machine() == "x86_64" else 56)')
start() { # plan, as whom: one more of `pids`
    # shellcheck disable=SC2016
    "${@:2}" bash -c ': <"$1"' start "$dealfs/plan/$1" 2>/dev/null &
    pids+=($!)
}
epoch=100
asked() { # all have got to the mount; they may have been answered by now
    local pid
    for pid in "${pids[@]}"; do waits "$pid" 2>/dev/null || has_ended "$pid" || return; done
}
some_wait() { # one of them at least has not been answered
    local pid
    for pid in "${pids[@]}"; do ! waits "$pid" 2>/dev/null || return 0; done
    return 1
}
# COUNT of these plans are asked for, which nobody has asked for before, and the command succeeds before all of them are
# made. On a machine where it is late, it is tried again with others.
meanwhile() { # COUNT, 'as whom', COMMAND…
    local status=1 i who
    read -ra who <<<"$2"
    pids=()
    for ((i = 0; i < $1; i++)); do start "epoch=$((epoch += 1)),$slow" "${who[@]}"; done
    ! wait_for asked || ! "${@:3}" || ! some_wait || status=0
    kill -TERM "${pids[@]}" 2>/dev/null
    for i in "${pids[@]}"; do wait "$i" 2>/dev/null; done
    return $status
}
answer() {
    value "$mnt" plans.made && [ "$(ask 0 x 'stage action=look')" -gt 0 ] && cat "$dealfs/samples.d/imagefolder"
}
ok 'status, stage and small lists answer while long plans are made' wait_for meanwhile 6 env answer
# Two are made at a time.
let_go() {
    local pid
    kill -TERM "${pids[5]}"
    wait "${pids[5]}" 2>/dev/null
    [ $? = 143 ] || return
    for pid in "${pids[@]:0:5}"; do waits "$pid" || wait "$pid" || unmade=$((unmade + 1)); done
}
unmade=0
ok 'who waits for his turn is let go before it is' wait_for meanwhile 6 env let_go
is 'and the others are made' $unmade 0
pids=()
for i in 1 2; do start "epoch=$((epoch += 1)),$slow" env; done
ok 'two more are asked for' wait_for asked
kill -9 "$(value "$mnt" pids.server)"
followed() { [ "$(value "$mnt" generation)" -gt 1 ]; }
ok 'the server is killed' wait_for followed
for i in 0 1; do
    wait "${pids[i]}"
    is 'and the next one makes them' $? 0
done

# The kernel looks each up, and lets nobody else into the directory meanwhile.
# shellcheck disable=SC2016
"${as_other[@]}" bash -c 'epoch=21; while :; do mkdir "$1/epoch=$((epoch++)),$2"; done' \
    make "$dealfs/plan" "$slow" 2>"$tmp/made" &
maker=$!
tap_pids+=("$maker")
many_made() { [ "$(wc -l <"$tmp/made")" -ge 20 ]; }
ok 'and make directories of such names' wait_for many_made
owners_is_made() { [ "$(cat "$dealfs/plan/epoch=$epoch,ranks=1,batch=1" | wc -w)" = 20000 ]; }
ok 'others ask for long plans: the owner has his meanwhile' wait_for meanwhile 6 "${as_other[*]}" owners_is_made
like 'who made none' "$(head -1 "$tmp/made")" 'mkdir: .*: File exists'
kill "$maker"
wait "$maker" 2>/dev/null
exec 6<"$dealfs/plan/epoch=1,ranks=1,batch=64,under=class00"
names() { # of one plan, more than are remembered
    local zeros=0000000000000000 a b c
    for a in {0..16}; do for b in {0..15}; do for c in {0..15}; do
        echo "$dealfs/plan/epoch=${zeros:0:a}1,ranks=${zeros:0:b}1,batch=${zeros:0:c}1"
    done; done; done
}
is 'others look at many' "$(names | other xargs -n 500 stat -c %n | wc -l)" 4352
is 'what the owner has open is there nevertheless' "$(wc -l <&6)" 1
exec 6<&-
fails 'they have a part of the memory only' other stat "$dealfs/plan/epoch=1,ranks=1,batch=1,echo=999,reply=u64"
like 'which errors says' \
    "$(tail -1 "$dealfs/errors")" '33.*ENOMEM: .* [0-9.]+ MiB.*all users except .* may use 128 MiB'
ok 'more than that the owner has' stat "$dealfs/plan/epoch=1,ranks=1,batch=64,echo=999,reply=u32"
ok 'unmount' dealfs umount "$mnt"
nothing_left
done_testing
