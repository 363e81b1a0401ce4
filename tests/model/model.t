#!/bin/bash
# The mount against its source, as random calls from several processes see both: see check.py.
# MODEL_SEEDS="1 2 3" asks for other trees than the usual one, MODEL_OPERATIONS for more calls.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require /usr/bin/python3

seeds=${MODEL_SEEDS:-1}
operations=${MODEL_OPERATIONS:-60}
processes=3

check() { # seed, source, mount, how many times the usual number of calls, directory of progress
    /usr/bin/python3 "$top_srcdir/tests/model/check.py" "$2" "$3" "$1" "$processes" "$((operations * ${4:-1}))" "${@:5}"
}

tree() { # seed, directory, options…
    /usr/bin/python3 "$top_srcdir/tests/model/tree.py" "$2" "$1" "${@:3}" || bail_out "the tree of seed $1 was not made"
}

# Kills the server of a mount, each time that all processes have completed an operation, until the file `stop` is there:
# a request that is in progress at twelve kills in a row fails.
kill_again_and_again() {
    local -A size
    local file
    until [ -e "$tmp/stop" ]; do
        ! restart "$1" server || echo killed >>"$tmp/kills"
        size=()
        for file in "$tmp"/progress/*; do size[$file]=$(stat -c %s "$file"); done 2>/dev/null
        wait_for all_go_on
    done
}
all_go_on() {
    local file
    [ -e "$tmp/stop" ] && return
    for file in "${!size[@]}"; do
        [ -e "$file" ] && [ "$(stat -c %s "$file")" = "${size[$file]}" ] && return 1
    done
    return 0
}

for seed in $seeds; do
    source=$tmp/source-$seed mount=$tmp/mount-$seed
    tree "$seed" "$source"

    ok "seed $seed: defaults" mount_up "$source" "$mount"
    ok "seed $seed: the same calls, the same results" check "$seed" "$source" "$mount"
    dealfs stage "$mount" >/dev/null &
    stage=$!
    ok "seed $seed: while staging" check "$((seed + 100))" "$source" "$mount"
    wait "$stage"
    is "seed $seed: staging went well" $? 0
    ok "seed $seed: verify agrees" dealfs verify "$mount"
    rm -rf "$tmp/stop" "$tmp/kills" "$tmp/progress"
    mkdir "$tmp/progress"
    kill_again_and_again "$mount" &
    killer=$!
    ok "seed $seed: servers are killed" wait_for test -s "$tmp/kills"
    ok "seed $seed: while its server is killed repeatedly" check "$((seed + 200))" "$source" "$mount" 4 \
        "$tmp/progress"
    : >"$tmp/stop"
    wait "$killer"
    diag "servers were killed $(wc -l <"$tmp/kills") times"
    ok "seed $seed: umount" dealfs umount "$mount"

    ok "seed $seed: no tier at all" mount_up -o ram=0 "$source" "$mount"
    ok "seed $seed: no tier: the same" check "$((seed + 300))" "$source" "$mount"
    ok "seed $seed: no tier: umount" dealfs umount "$mount"

    mkdir -p "$tmp/ssd-$seed"
    ok "seed $seed: a small RAM tier and an SSD tier" mount_up -o "ram=8M,ssd=$tmp/ssd-$seed" "$source" "$mount"
    ok "seed $seed: two tiers: the same" check "$((seed + 400))" "$source" "$mount"
    ok "seed $seed: two tiers: stage" dealfs stage "$mount"
    ok "seed $seed: two tiers: umount" dealfs umount "$mount"
    ok "seed $seed: the SSD tier, mounted again" mount_up -o "ram=8M,ssd=$tmp/ssd-$seed" "$source" "$mount"
    ok "seed $seed: mounted again: the same" check "$((seed + 500))" "$source" "$mount"
    ok "seed $seed: mounted again: umount" dealfs umount "$mount"
    rm -rf "$source" "$tmp/ssd-$seed"

    tree "$seed" "$source" --compressible --small
    ok "seed $seed: compressible content" mount_up "$source" "$mount"
    ok "seed $seed: compressible: stage" dealfs stage "$mount"
    ok "seed $seed: compressible: the same" check "$((seed + 600))" "$source" "$mount"
    ok "seed $seed: compressible: umount" dealfs umount "$mount"
    rm -rf "$source"
done
done_testing
