#!/bin/bash
# Mounts with resize=: JPEG files are made smaller before the mount is live; all others pass as they are.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
export DEALFS_IMAGE_PATIENCE=3600 # an image that hangs does so as long as it is looked at
pictures=$top_builddir/tests/fs/image/pictures
src=$tmp/src mnt=$tmp/mnt ssd=$tmp/ssd state=$tmp/state log=$tmp/state/log
count=30
"$pictures" make "$src" $count || bail_out 'no pictures'
echo 'no picture' >"$src/a.txt"
settle "$src"
mkdir "$ssd" "$mnt"
at_exit dealfs umount "$mnt"
resized() { # side, quality; are all files what they are to be?
    local file to wrong=0
    mkdir -p "$tmp/expected.$1.$2"
    for file in "$src"/*; do
        to=$tmp/expected.$1.$2/${file##*/}
        [ "$to" -nt "$file" ] || "$pictures" shrink "$1" "$2" "$file" >"$to" || cp "$file" "$to"
        cmp "$to" "$mnt/${file##*/}" || wrong=$((wrong + 1))
    done
    return $((wrong > 0))
}
up() { dealfs mount -o "state=$state,$1" "$src" "$mnt" >"$tmp/said" 2>&1 || { cat "$tmp/said"; return 1; }; }
down() { dealfs umount "$mnt"; }
no_resizer() { ! processes "dealfs-resizer 40" | grep -q .; }
fails_quietly() { ! "$@"; }
length() { stat -c %s "$1"; }
made_again() { ! pgrep -P "$(value "$mnt" pids.server)" -f 'dealfs-resizer --worker'; } # by nobody now

# --- the first time ---
good=$((count + 4)) # and arithmetic, grey, progressive, turned
ok 'it mounts' up "resize=64,quality=80,ssd=$ssd,ram=0"
like 'it says so' "$(cat "$tmp/said")" "$good images are resized to 64 pixels, .* -> .*; $((count + 14)) files were new"
ok 'each image is what it is resized to, each other file as it was' resized 64 80
is 'status counts the images' "$(value "$mnt" resize.images)" $good
is 'and what passes, by reason' "$(value "$mnt" resize.passed)" \
    '{"not-jpeg": 3, "empty": 1, "truncated": 1, "corrupt": 1, "colours": 1, "unsupported": 1, "small": 2}'
like 'and says how' "$(value "$mnt" resize)" '"pixels": 64, "quality": 80, "library": "libjpeg'
line=$(dealfs status "$mnt")
like 'dealfs status has a line of it' "$line" "images    $good resized to 64 pixels, .*; 0 of them made again"
like 'the log names what passes, and why' "$(cat "$log")" 'cut.jpg is not resized: truncated: Premature end'
unlike 'but not what is small, or no JPEG file' "$(cat "$log")" 'small.jpg|a.txt'
is 'images were read from the shard' "$(value "$mnt" resize.remade)" 0
ok 'verify makes each again' dealfs verify "$mnt"
is 'ls shows the sizes' "$(length "$mnt/grey.jpg")" "$("$pictures" shrink 64 80 "$src/grey.jpg" | wc -c)"
mkdir "$tmp/locked"
python3 - "$tmp/locked/lock" "$tmp/locked.now" <<'END' &
import fcntl, signal, sys
lock = open(sys.argv[1], 'w')
fcntl.lockf(lock, fcntl.LOCK_EX)
open(sys.argv[2], 'w')
signal.pause()
END
holder=$!
tap_pids+=("$holder")
ok 'a tier is locked' wait_for test -e "$tmp/locked.now"
said=$(DEALFS_TIER_PATIENCE=1 dealfs-resizer 41 80 "" 0 "$tmp/locked" 1000000 3<"$state" 4<"$src" 2>&1)
isnt 'a tier that stays locked: it fails' $? 0
is 'and says so' "$said" "e open the tier in $tmp/locked: another process has locked it"
kill $holder
digest=$(value "$mnt" catalog.digest)
kill -9 "$(value "$mnt" pids.server)"
drop_cache "$mnt"/*
ok 'the next server has them, too' resized 64 80
ok 'unmount' down

# --- again ---
ok 'it mounts again' up "resize=64,quality=80,ssd=$ssd,ram=0"
ok 'without making anything' made_nothing "$tmp/said"
ok 'the same' resized 64 80
is 'out of the shard' "$(value "$mnt" resize.remade)" 0
is 'with the same catalog' "$(value "$mnt" catalog.digest)" "$digest"
ok 'unmount' down
"$pictures" make "$tmp/more" $((count + 1)) && cp "$tmp/more/good0$count.jpg" "$src/new.jpg"
cp "$tmp/more/good029.jpg" "$src/good000.jpg"
rm "$src/good001.jpg"
settle "$src"
ok 'the source changes: mount' up "resize=64,quality=80,ssd=$ssd,ram=0"
like 'only what is new is made' "$(cat "$tmp/said")" '; 2 files were new'
ok 'all are right' resized 64 80
is 'and out of the shard' "$(value "$mnt" resize.remade)" 0
ok 'unmount' down

# --- what is lost is made again ---
ok 'without the shard' up 'resize=64,quality=80,ram=64M'
like 'it says so' "$(cat "$tmp/said")" 'resized again when they are read'
ok 'the same bytes' resized 64 80
is 'each was made again once' "$(value "$mnt" resize.remade)" $good
drop_cache "$mnt"/*
ok 'and is kept then' resized 64 80
is 'so that it is not made again' "$(value "$mnt" resize.remade)" $good
ok 'no process is kept for it' wait_for made_again
ok 'unmount' down
deadly=$src/good007.jpg
ok 'a codec that does not come back' env DEALFS_IMAGE_FAULT="hang=$(length "$deadly")" \
    dealfs mount -o "state=$state,resize=64,quality=80,ram=64M" "$src" "$mnt"
cat "$mnt/good007.jpg" >/dev/null 2>&1 &
reader=$!
ok 'a read waits for it' wait_for grep -q 'it hangs' "$log"
kill -9 $reader
wait $reader 2>/dev/null
ok 'unmount' down
ok 'does not wait for it' ended_in_order "$log"
ok 'a codec that dies of one image' env DEALFS_IMAGE_FAULT="crash=$(length "$deadly")" \
    dealfs mount -o "state=$state,resize=64,quality=80,ram=64M" "$src" "$mnt"
fails 'does not give its original' cat "$mnt/good007.jpg"
ok 'nor harms another' cmp "$mnt/good008.jpg" <("$pictures" shrink 64 80 "$src/good008.jpg")
like 'status has it' "$(value "$mnt" resize.failed) $(value "$mnt" health)" '^[1-9].*could not be resized again'
like 'the log says why' "$(cat "$log")" 'resize good007.jpg again: the process that worked on it has died'
one_line 'verify finds it' 'good007.jpg: cannot be resized again' \
    env DEALFS_IMAGE_FAULT="crash=$(length "$deadly")" dealfs verify "$mnt"
ok 'unmount' down

# --- a loader that knows nothing of it ---
python=${PYTHON:-/usr/bin/python3}
if $python -c 'import torch, torchvision' 2>/dev/null; then
    mkdir "$tmp/classes" && "$pictures" make "$tmp/classes/a" 8 && "$pictures" make "$tmp/classes/b" 8
    rm "$tmp/classes"/?/{cut,damaged,nothing,flat,twelve}.jpg "$tmp/classes"/?/png.JPEG
    cat >"$tmp/train.py" <<'END'
import sys
import numpy, torch
from torchvision import transforms
from torchvision.datasets import ImageFolder
mnt = sys.argv[1]
shape = transforms.Compose([transforms.CenterCrop(64), transforms.ToTensor()])
data = ImageFolder(mnt, shape)
model = torch.nn.Linear(3 * 64 * 64, 2)
step = torch.optim.SGD(model.parameters(), lr=.001)
seen = 0
for images, labels in torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, num_workers=2):
    loss = torch.nn.functional.cross_entropy(model(images.flatten(1)), labels)
    step.zero_grad(), loss.backward(), step.step()
    seen += len(labels)
assert seen == len(data) == 28, seen
pixels = numpy.load(mnt + '/.dealfs/decoded/a/good003.jpg.npy', mmap_mode='r')
assert pixels.shape == (64, 82, 3), pixels.shape
END
    ok 'classes: mount' dealfs mount -o "state=$tmp/state3,resize=64" "$tmp/classes" "$mnt"
    ok 'ImageFolder trains, and sees what is decoded' $python "$tmp/train.py" "$mnt"
    like 'metrics have it' "$(cat "$mnt/.dealfs/metrics")" 'dealfs_images_remade_total 0'
    ok 'unmount' down
else
    skip 4 'python3-torchvision is not installed'
fi

# --- other terms, and what dies meanwhile ---
ok 'another size, and a codec that dies of one image' env DEALFS_IMAGE_FAULT="crash=$(length "$deadly")" \
    dealfs mount -o "state=$state,resize=50,ssd=$ssd" "$src" "$mnt"
ok 'that one passes as it is' cmp "$deadly" "$mnt/good007.jpg"
is 'and is counted' "$(value "$mnt" resize.passed.crashed)" 1
ok 'the others are resized' cmp "$mnt/turned" <("$pictures" shrink 50 90 "$src/turned")
ok 'unmount' down
ok 'the next mount tries it again' up "resize=50,ssd=$ssd"
like 'it alone' "$(cat "$tmp/said")" '; 1 files were new'
ok 'all are right' resized 50 90
ok 'unmount' down
ok 'without resize=' up "ssd=$ssd"
ok 'files are as they are in the source' diff -r -x .dealfs "$src" "$mnt"
ok 'unmount' down
hung=0
hanging() { # another one than before
    processes 'dealfs-resizer 40' | grep -q . && [ "$(grep -cs 'it hangs' "$tmp/state4/log")" -gt $hung ]
}
hangs() { wait_for hanging && hung=$(grep -cs 'it hangs' "$tmp/state4/log"); }
begin_hanging() {
    hung=0
    DEALFS_IMAGE_FAULT="hang=$(length "$deadly")" \
        dealfs mount -o "state=$tmp/state4,resize=40,ssd=$tmp/ssd4" "$src" "$mnt" >"$tmp/hung" 2>&1 </etc/passwd &
    command=$!
    ok 'an image that hangs: it waits' hangs
}
kill_resizer() { processes 'dealfs-resizer 40' | xargs kill -9; }
stored() { find "$tmp/ssd4" -name '*.sst' | grep -q .; }
mkdir "$tmp/ssd4"
begin_hanging
is "it has not the command's input" "$(readlink "/proc/$(processes 'dealfs-resizer 40')/fd/0")" /dev/null
ok 'what is made is stored' wait_for stored
kill_resizer
ok 'it is killed: another one takes over' hangs
pkill -9 -P "$(processes 'dealfs-resizer 40')" -f 'dealfs-resizer --worker' # the one that hangs
ok 'and ends what that one began' wait $command
# All but the one, unless some were not made yet when the first file of them was stored.
done_before=$(sed -n "s/.* \([0-9]*\) of $((count + 14)) files are done already.*/\1/p" "$tmp/state4/log")
ok "it did the rest alone: $done_before were done" test "$done_before" -gt 0 -a "$done_before" -le $((count + 13))
ok 'the image that hung passes as it is' cmp "$deadly" "$mnt/good007.jpg"
ok 'the others are resized' cmp "$mnt/turned" <("$pictures" shrink 40 90 "$src/turned")
is 'and nothing is lost' "$(value "$mnt" resize.remade)" 0
ok 'unmount' down
rm -r "$tmp/state4" "$tmp/ssd4"
mkdir "$tmp/ssd4"
begin_hanging
for i in 1 2 3; do
    kill_resizer
    ok "it is killed again, time $i" hangs
done
kill_resizer
fails 'the fourth time it fails' wait $command
is 'and says so' "$(tail -n 1 "$tmp/hung")" 'dealfs: dealfs-resizer was killed 4 times, the last time by signal 9'
ok 'nothing is mounted' fails_quietly mountpoint -q "$mnt"
ok 'no process is left' wait_for no_resizer
rm -rf "$tmp/state4"
begin_hanging
kill -TERM $command
fails 'SIGTERM meanwhile: it fails' wait $command
ok 'nothing is mounted' fails_quietly mountpoint -q "$mnt"
ok 'no process is left' wait_for no_resizer
state=$tmp/state4 ok 'then it mounts' up "resize=40,ssd=$tmp/ssd4"
new=$(sed -n 's/.*; \([0-9]*\) files were new.*/\1/p' "$tmp/said")
ok 'and goes on with what was made until SIGTERM' test "${new:-0}" -lt "$(find "$src" -type f | wc -l)"
ok 'and is right' resized 40 90
is 'out of the shard' "$(value "$mnt" resize.remade)" 0
ok 'unmount' down

# --- images that nobody can resize: it does not try for ever ---
for ((i = 0; i < 40; i++)); do cp "$deadly" "$src/z$i.jpg"; done
settle "$src"
many_kill() {
    DEALFS_IMAGE_FAULT="crash=$(length "$deadly")" \
        dealfs mount -o "state=$tmp/state5,resize=40,ssd=$ssd" "$src" "$mnt" >"$tmp/said" 2>&1
}
fails 'many images that kill: it fails' many_kill
# 36; as many more as were under way by then.
like 'with what to do' "$(tail -n 1 "$tmp/said")" \
    '^dealfs: (3[6-9]|4[01]) images have stopped .*: the log names them\. Remove or'
named=$(grep -c 'z[0-9]*.jpg is not resized: crashed' "$tmp/state5/log")
ok "the log names them: $named" test "$named" -ge 35
rm "$src"/z*.jpg
settle "$src"
state=$tmp/state5 ok 'without them it mounts' up "resize=40,ssd=$ssd"
like 'and goes on' "$(cat "$tmp/said")" '; 1 files were new'
ok 'all are right' resized 40 90
ok 'unmount' down

# --- what is refused ---
exits 1 'too little room' dealfs mount -o "state=$tmp/state2,resize=200,ram=100K" "$src" "$mnt"
like 'the message' "$(tail -n 1 "$tmp/.output")" 'ram=.*ssd=.*ssd_size=.*resize='
one_line 'a quality alone' 'needs resize=PIXELS' dealfs mount -o quality=80 "$src" "$mnt"

# --- a resizer that its courier ends ---
# It waits for the reader of its output. SIGTERM bounds this: it starts a timer.
mkdir "$tmp/none" && mkfifo "$tmp/full"
exec 9<>"$tmp/full"
dd if=/dev/zero of="$tmp/full" oflag=nonblock status=none 2>/dev/null
background strace -qq -o "$tmp/timers" -e trace=?alarm,setitimer "$top_builddir/dealfs-resizer" 41 80 '' 0 '' 0 4 \
    >"$tmp/full" 2>/dev/null 3<"$tmp/none" 4</dev/null
tracer=$!
takes_signal() {
    resizer=$(pgrep -P "$tracer" dealfs-resizer) &&
        ((0x$(sed -n 's/^SigCgt:\t//p' "/proc/$resizer/status") & 1 << 14))
}
ok 'a resizer with a courier' wait_for takes_signal
is 'has no timer' "$(cat "$tmp/timers")" ''
kill -TERM "$resizer"
ok 'one that is to end has a timer' wait_for grep -qE 'alarm\([1-9]|setitimer\(ITIMER_REAL' "$tmp/timers"
kill -KILL "$resizer"
done_testing
