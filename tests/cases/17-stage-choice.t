#!/bin/bash
# `dealfs stage` of some files: below a directory, by name, of a sample list, in the order of a plan. By one node and by
# a world, beside deaths of servers, and with what contradicts itself.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src mnt=$tmp/node9 faults=$tmp/faults size=50000
make_files "$src" 80 $size # 20 per class
: >"$faults"
export DEALFS_SOURCE_FAULTS="file=$faults" DEALFS_STAGE_PATIENCE=3600
state() { value "$mnt" stage.state; }
tier_of() { (cd "$src" && find . -type f -printf '%P\n' | sort | xargs dealfs where "$1"); }
held() { tier_of "$1" | awk -F'\t' '$3 != "-" { print $4 }'; }
fresh() {
    mount_end "$mnt"
    rm -rf "$tmp/mnt.state"
    mount_up -o "state=$tmp/mnt.state,ram=64M,source_threads=1" "$src" "$mnt"
}
mount_end() { ! mountpoint -q "$1" || dealfs umount "$1"; }
stage_some() { dealfs stage "$@" >"$tmp/out"; }
source_bytes() { value "$mnt" source.bytes; }

# --- one node ---
ok 'mount' fresh
ok 'below a directory' stage_some --under class2 "$mnt"
like 'only its files are counted' "$(cat "$tmp/out")" '^20 of 20 files checked, 976.6 KiB cached'
is 'only they are cached' "$(held "$mnt")" "$(cd "$src" && find class2 -type f | sort)"
is 'and read' "$(source_bytes)" $((20 * size))
is 'status counts the same' "$(value "$mnt" stage.bytes_total)" $((20 * size))
ok 'the path of the mount' stage_some --under "$mnt/class2/" "$mnt"
like 'is that directory' "$(cat "$tmp/out")" '^20 of 20 files'
ok 'by name' stage_some --match '00*.bin' "$mnt"
like 'ten files' "$(cat "$tmp/out")" '^10 of 10 files'
printf 'class0/000.bin\nclass1/001.bin\nclass0/000.bin\n' >"$tmp/paths"
like 'a list' "$(request 9 "$tmp/paths" samples name=mine)" '^3.'
ok 'of a sample list' stage_some --samples mine "$mnt"
like 'each file once' "$(cat "$tmp/out")" '^2 of 2 files'
ok 'all' stage_some "$mnt"
like 'are all' "$(cat "$tmp/out")" '^80 of 80 files'

one_line 'no such directory' 'under=nowhere: No such file' dealfs stage --under nowhere "$mnt"
one_line 'no file' 'no file of the dataset is chosen' dealfs stage --match '*.jpeg' "$mnt"
one_line 'no such list' '`yours`' dealfs stage --samples yours "$mnt"
one_line 'a plan that lacks keys' 'plan.*ranks' dealfs stage --plan epoch=1 "$mnt"
one_line 'both' 'with .plan.* are keys of the plan' dealfs stage --under class1 --plan epoch=1,ranks=2,batch=2 "$mnt"
one_line 'an order that would follow' 'cannot be staged' dealfs stage --plan epoch=1,ranks=2,batch=2,order=u32 "$mnt"
is 'the wrong form is wrong usage' "$(dealfs stage --plan epoch "$mnt" 2>/dev/null; echo $?)" 2

# --- in the order of a plan ---
ok 'mount' fresh
dealfs plan "$mnt" epoch=3 ranks=4 batch=2 reply=paths | cut -f 4 >"$tmp/order"
is 'a plan of all files' "$(sort -u "$tmp/order" | wc -l)" 80
set_faults "hang=$(sed -n 21p "$tmp/order")"
dealfs stage --plan epoch=3,ranks=4 --plan batch=2 "$mnt" >"$tmp/stage.log" 2>&1 &
stage=$!
some_held() { [ "$(held "$mnt" | wc -l)" -ge 20 ]; }
ok 'staged in its order' wait_for some_held
is 'what is cached are the first of the plan' "$(held "$mnt" | sort)" "$(head -n 20 "$tmp/order" | sort)"
one_line 'other files meanwhile' 'other files are being staged' dealfs stage "$mnt"
one_line 'nor these' 'other files are being staged' dealfs stage --under class1 "$mnt"
like 'the same plan joins it' "$(request 9 /dev/null stage plan=epoch=3,ranks=4,batch=2)" '"state":"running"'
old=$(value "$mnt" pids.server)
kill -9 "$old"
isnt 'its server dies' "$(value "$mnt" pids.server)" "$old"
ok 'the next one resumes it' wait_for eval '[ "$(state)" = running ]'
set_faults ''
ok 'to its end' wait "$stage"
is 'all are cached' "$(held "$mnt" | wc -l)" 80
like 'the list can be read' "$(head -n 1 "$mnt/.dealfs/samples.d/staged")" "^$(head -n 1 "$tmp/order")$"

# --- stopped ---
ok 'mount' fresh
set_faults 'hang=class1/*'
dealfs stage --under class1 "$mnt" >"$tmp/stage.log" 2>&1 &
stage=$!
ok 'staging' wait_for eval '[ "$(state)" = running ]'
ok 'stopped by another command' dealfs stage --stop "$mnt"
wait "$stage"
is 'it says so' $? 1
like 'and how to resume' "$(cat "$tmp/stage.log")" 'with the same options resumes it'
set_faults ''
ok 'which works' dealfs stage --under class1 "$mnt"
is 'with all its files' "$(held "$mnt" | wc -l)" 20
ok 'unmount' dealfs umount "$mnt"

# --- at a bounded rate ---
rm -rf "$tmp/mnt.state"
ok 'mount' mount_up -o "state=$tmp/mnt.state,ram=64M,source_rate=1M" "$src" "$mnt"
is 'status has the rate' "$(value "$mnt" source.rate)" 1048576
like 'and says it' "$(dealfs status "$mnt")" 'source .*, at most 1 MiB/s'
ok 'stage' stage_some "$mnt"
is 'all are cached' "$(held "$mnt" | wc -l)" 80
ok 'unmount' dealfs umount "$mnt"
# 1.6 GiB at 1 MiB/s take longer than a test may.
mkdir "$tmp/holes" "$tmp/unlimited"
for i in 1 2 3 4; do truncate -s 400M "$tmp/holes/$i"; done
rm -rf "$tmp/mnt.state"
ok 'mount' mount_up -o "state=$tmp/mnt.state,ram=2G,source_rate=1M" "$tmp/holes" "$mnt"
dealfs stage "$mnt" >"$tmp/stage.log" 2>&1 &
stage=$!
tap_pids+=("$stage")
ok 'staging' wait_for eval '[ "$(state)" = running ]'
ok 'another mount of the source, without the rate' \
    mount_up -o "state=$tmp/unlimited.state,ram=2G" "$tmp/holes" "$tmp/unlimited"
ok 'is staged' dealfs stage "$tmp/unlimited"
is 'while the first is not' "$(state)" running
ok 'unmount' dealfs umount "$tmp/unlimited"
ok 'unmount amid staging' dealfs umount "$mnt"
wait "$stage"

# --- a world ---
ok 'three nodes' world_mount 3
ok 'a directory' stage_some --under class3 "$tmp/node1"
like 'is counted once' "$(cat "$tmp/out")" '^20 of 20 files checked, 976.6 KiB cached'
is 'the nodes cache all of it' "$(world_sum stage.kept 0 1 2)" $((20 * size))
is 'and nothing else was read' "$(world_sum source.bytes 0 1 2)" $((20 * size))
for i in 0 1 2; do ok "node $i has a part" [ "$(value "$tmp/node$i" stage.files_total)" -gt 0 ]; done
ok 'a plan' stage_some --plan epoch=0,ranks=3,batch=4,match='00*' "$tmp/node2"
like 'of ten files' "$(cat "$tmp/out")" '^10 of 10 files'
set_faults 'hang=class0/*'
dealfs stage --under class0 "$tmp/node0" >"$tmp/stage.log" 2>&1 &
stage=$!
ok 'staging' wait_for eval '[ "$(value "$tmp/node2" stage.state)" = running ]'
one_line 'other files, on another node' 'other files are being staged' dealfs stage "$tmp/node1"
old=$(pid_of 2 server)
kill -9 "$old"
isnt 'a server dies' "$(pid_of 2 server)" "$old"
set_faults ''
ok 'its part is staged' wait "$stage"
like 'and counted' "$(tail -n 3 "$tmp/stage.log")" '20 of 20 files'
ok 'all' stage_some "$tmp/node0"
like 'are all' "$(cat "$tmp/out")" '^80 of 80 files'
everywhere 'all bytes are right' 0 1 2
ok 'the end' world_umount
nothing_left 'nothing is left'
done_testing
