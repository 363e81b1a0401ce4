#!/bin/bash
# Plans from a mount: the control file, the files below plan/, `dealfs plan`; what is refused, and who asks at once.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require python3
src=$tmp/src mnt=$tmp/mnt
make_files "$src" 100 500
ok 'mount' mount_up -o ram=16M "$src" "$mnt"
control=$mnt/.dealfs/control folder=$mnt/.dealfs/plan
ask() { dealfs plan "$mnt" "$@"; }
base=(epoch=0 ranks=4 batch=8)

# --- three ways to the same list ---
list=$(ask "${base[@]}" rank=1)
is 'a rank has its share, one number a line' "$(wc -l <<<"$list")" 25
is 'the same by the control file' "$(request_at "$mnt" /dev/null plan "${base[@]}" rank=1)" "$list"
file="$folder/epoch=0,ranks=4,batch=8,rank=1"
is 'the same as a file' "$(cat "$file")" "$list"
is 'whose size is true' "$(stat -c %s "$file")" "$(wc -c <"$file")"
ok 'it can be copied' cp "$file" "$tmp/copy"
is 'whole' "$(cat "$tmp/copy")" "$list"
is 'the folder shows nothing' "$(ls "$folder")" ''
is 'all ranks: a line each' "$(ask "${base[@]}" | awk '{ print NF }' | tr '\n' ' ')" '25 25 25 25 '
is 'the second is that list' "$(ask "${base[@]}" | sed -n 2p | tr ' ' '\n')" "$list"
is 'each sample once' "$(ask "${base[@]}" | tr ' ' '\n' | sort -n)" "$(seq 0 99)"
is 'numbers' "$(ask "${base[@]}" rank=1 reply=u32 | od -An -v -tu4 -w4 | tr -d ' ')" "$list"
is 'wide ones' "$(ask "${base[@]}" rank=1 reply=u64 | od -An -v -tu8 -w8 | tr -d ' ')" "$list"
isnt 'another epoch is another order' "$(ask epoch=1 ranks=4 batch=8 rank=1)" "$list"
is 'seed and epoch are added' "$(ask epoch=0 seed=1 ranks=4 batch=8)" "$(ask epoch=1 ranks=4 batch=8)"
cat >"$tmp/read.py" <<'END'
import mmap, os, struct, sys
path, expected = sys.argv[1], [int(x) for x in open(sys.argv[2])]
with open(path + ',reply=u32', 'rb') as f:
    assert list(struct.unpack(f'<{len(expected)}I', f.read())) == expected, 'read'
with open(path + ',reply=u64', 'rb') as f, mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m:
    assert list(struct.unpack(f'<{len(expected)}Q', m)) == expected, 'mapped'
fd = os.open(path, os.O_RDONLY)
assert os.pread(fd, 3, 1) == open(path, 'rb').read()[1:4], 'pread'
END
echo "$list" >"$tmp/list"
ok 'read, mapped, from the middle' python3 "$tmp/read.py" "$file" "$tmp/list"
fails 'it cannot be written' sh -c "echo x >'$file'"

# --- orders, lists ---
seq 99 -1 0 >"$tmp/down"
is 'a given order' "$(ask epoch=0 ranks=1 batch=8 order=text rank=0 <"$tmp/down")" "$(seq 99 -1 0)"
python3 -c 'import struct; open("'"$tmp/down32"'","wb").write(struct.pack("<100I", *range(99,-1,-1)))'
is 'the same in numbers' "$(ask epoch=0 ranks=1 batch=8 order=u32 rank=0 <"$tmp/down32")" "$(seq 99 -1 0)"
is 'natural' "$(ask epoch=0 ranks=1 batch=8 order=natural)" "$(seq -s ' ' 0 99)"
is 'regular' "$(ask epoch=0 ranks=3 batch=8 order=natural mode=regular tail=drop rank=2)" "$(seq 2 3 98)"
is 'some of them' "$(ask epoch=0 ranks=1 batch=8 order=text distinct=no rank=0 <<<'5 5 7' | tr '\n' ' ')" '5 5 7 '
is 'below a directory' "$(ask epoch=0 ranks=1 batch=4 under=class1 order=natural | wc -w)" \
    "$(find "$src/class1" -type f | wc -l)"
ok 'with its count' ask epoch=0 ranks=1 batch=4 under=class1 "count=$(find "$src/class1" -type f | wc -l)"
printf 'class%d/00%d.bin\n' 0 0 1 1 >"$tmp/mine"
request_at "$mnt" "$tmp/mine" samples name=mine >/dev/null
is 'an uploaded list' "$(ask epoch=0 ranks=1 batch=4 samples=mine order=natural)" '0 1'
mine="$folder/epoch=0,ranks=1,batch=4,samples=mine,order=natural"
is 'as a file' "$(cat "$mine")" '0 1'
echo class2/002.bin >>"$tmp/mine"
request_at "$mnt" "$tmp/mine" samples name=mine >/dev/null
is 'which follows the list' "$(cat "$mine")" '0 1 2'
is 'skipped and echoed' \
    "$(ask epoch=0 ranks=1 batch=4 order=natural skip=194 echo=2 echo_buffer=0 rank=0 | tr '\n' ' ')" \
    '97 97 98 98 99 99 '
echoed=(epoch=0 ranks=1 batch=4 order=natural echo=2 echo_at=batch rank=0)
is 'batches echoed, and skipped with their echoes' "$(ask "${echoed[@]}" echo_buffer=0 skip=188 | tr '\n' ' ')" \
    '92 93 94 95 96 97 98 99 96 97 98 99 '
isnt 'the buffer shuffles batches' "$(ask "${echoed[@]}")" "$(ask "${echoed[@]}" echo_buffer=0)"
is 'whole ones' \
    "$(ask "${echoed[@]}" | xargs -n4 | sort -n | uniq -c | awk '{ print $1 }' | sort | uniq -c | xargs)" '25 2'
is 'and goes on after some' "$(ask "${echoed[@]}" skip=100)" "$(ask "${echoed[@]}" | tail -n +101)"

# --- the summary ---
(cd "$src" && find . -type f -printf '%P\n' | sort | head -n 50) >"$tmp/forth"
tac "$tmp/forth" >"$tmp/back"
digest_of() {
    ask epoch=0 ranks=2 batch=5 mode=regular order=natural "samples=$1" reply=summary | grep -o '"digest":"[0-9a-f]*"'
}
for name in forth back again; do
    request_at "$mnt" "$tmp/${name/again/forth}" samples name=$name >/dev/null
done
like 'a plan of a list' "$(digest_of forth)" '^"digest"'
isnt 'has another digest than one of other samples in the same places' "$(digest_of back)" "$(digest_of forth)"
is 'and the same as one of the same samples by another name' "$(digest_of again)" "$(digest_of forth)"
keyed() { ask epoch=0 ranks=2 batch=5 order=natural samples=forth reply=summary "$@" | grep -o '"digest":"[0-9a-f]*"'; }
is 'the samples of a step are the same' "$(ask epoch=0 ranks=2 batch=5 order=natural samples=forth tail=drop)" \
    "$(ask epoch=0 ranks=2 batch=5 order=natural samples=forth)"
isnt 'the digest covers each key that could choose others' "$(keyed tail=drop)" "$(keyed)"
is 'but not which part is asked for' "$(keyed rank=1 feed=yes)" "$(keyed)"
for name in forth back again; do
    ok "$name is removed" request_at "$mnt" /dev/null samples name=$name action=remove
done
summary=$(ask "${base[@]}" reply=summary)
like 'a summary has a digest' "$summary" '"digest":"[0-9a-f]{32}"'
is 'the same from here on every machine' \
    "$(grep -o '"steps":[0-9]*,"samples":[0-9]*' <<<"$summary")" '"steps":4,"samples":100'
like 'status has it, too' "$(tr -d ' \n' <"$mnt/.dealfs/status")" "$(grep -o '"digest":"[0-9a-f]*"' <<<"$summary")"
epoch_of() { ask ranks=4 batch=8 reply=summary "$@" | grep -o '"epoch":[0-9]*'; }
is 'the same order of another epoch' "$(epoch_of epoch=0 seed=5) $(epoch_of epoch=5) $(epoch_of epoch=3 seed=2)" \
    '"epoch":0 "epoch":5 "epoch":3'
like 'status counts' "$(cat "$mnt/.dealfs/status")" '"misplaced": 0'
made=$(value "$mnt" plans.made)
for rank in 0 1 2 3; do ask "${base[@]}" "rank=$rank" >/dev/null & done
wait
is 'nor another list where it is fed' "$(ask "${base[@]}" rank=1 feed=yes)" "$list"
planned() { echo "${1%%\"held_percent\"*}"; } # the rest of a summary: that changes as samples are read
is 'nor another digest' "$(planned "$(ask "${base[@]}" reply=summary feed=yes)")" "$(planned "$summary")"
is 'as a file' "$(cat "$file,feed=yes")" "$list"
is 'what is there is not planned again' "$(value "$mnt" plans.made)" "$made"
for rank in 0 1 2 3; do ask epoch=77 ranks=4 batch=8 "rank=$rank" >/dev/null & done
wait
is 'asked for by four at once: planned once' "$(value "$mnt" plans.made)" $((made + 1))

# --- echo ---
numbers() {
    ask epoch=0 ranks=4 batch=5 reply=summary "$@" | grep -Eo '"(steps|samples|fresh)":[0-9]*' | xargs
}
is 'twice the steps, as much that is fresh' "$(numbers) $(numbers echo=2) $(numbers echo=2 echo_at=batch)" \
    'steps:5 samples:100 fresh:100 steps:10 samples:200 fresh:100 steps:10 samples:200 fresh:100'
metric() { sed -n "s/^dealfs_plan_$1 //p" "$mnt/.dealfs/metrics"; }
ask epoch=9 ranks=4 batch=5 >/dev/null
once="$(metric steps) $(metric fresh_bytes)"
ask epoch=9 ranks=4 batch=5 echo=2 >/dev/null
is 'metrics: twice the steps for the same bytes' "$(metric steps) $(metric fresh_bytes)" \
    "$((2 * ${once% *})) ${once#* }"
like 'duplicates in percent' "$(ask epoch=0 ranks=4 batch=5 echo=2 echo_buffer=0 reply=summary)" \
    '"duplicates_percent":50.000'
like 'a large buffer makes fewer' "$(ask epoch=0 ranks=4 batch=5 echo=2 reply=summary)" \
    '"duplicates_percent":[12]?[0-9]\.'

# --- refusals ---
refuse() { # errno's name, regex of the reason, words
    local name=$1 reason=$2 out
    shift 2
    out=$(ask "$@" 2>&1 <"${order:-/dev/null}")
    is "refused: $* " $? 1
    like 'with its reason' "$out" "$reason"
    like 'in errors by its name' "$(tail -1 "$mnt/.dealfs/errors")" "$name: .*$reason"
}
before=$(value "$mnt" plans.made)
refuse EINVAL '`ranks`' epoch=0 rnks=4 batch=8
refuse EINVAL 'given twice' "${base[@]}" epoch=1
refuse EINVAL 'needs `batch=' epoch=0 ranks=4
refuse ERANGE '1 to 1048576' epoch=0 ranks=0 batch=8
refuse ERANGE '0 to 3' "${base[@]}" rank=4
refuse EINVAL 'not one of' "${base[@]}" reply=json
refuse EINVAL 'has 100 samples; `under=DIR`, `match=GLOB` or `samples=NAME`' "${base[@]}" count=99
refuse EINVAL 'has 100 samples; `under=class0` has that many' "${base[@]}" count=25
refuse EINVAL 'has 25 samples; `samples=mine` has that many' "${base[@]}" under=class0 count=3
refuse EINVAL 'has 3 samples; `samples=mine under=class0` has that many' "${base[@]}" samples=mine count=1
refuse EINVAL '`samples=all` has that many' "${base[@]}" samples=imagefolder count=100
refuse ENOENT '`none`' "${base[@]}" samples=none
refuse ERANGE 'past the end' "${base[@]}" skip=101
refuse ERANGE 'past the end' "${base[@]}" echo=2 echo_at=batch skip=288
refuse EINVAL 'a multiple of the global batch, 32' "${base[@]}" echo=2 echo_at=batch skip=33
refuse ERANGE '1 to 1000' "${base[@]}" echo=0.9
refuse ESTALE '0123456789abcdef0123456789abcdef is not known' "${base[@]}" layout=0123456789abcdef0123456789abcdef
refuse ENOENT 'rank 1 is on `7`' epoch=0 ranks=2 batch=8 nodes=0,7
refuse EINVAL 'fewer' "${base[@]}" nodes=0,0
refuse EINVAL 'too short' "${base[@]}" order=text
order=$tmp/words
{ seq 0 98; echo x; } >"$order"
refuse EINVAL 'not a number: `x`' "${base[@]}" order=text
order=$tmp/down32
refuse EINVAL 'too short' "${base[@]}" order=u64
order=$tmp/longer
cat "$tmp/down32" "$tmp/down32" >"$order"
refuse EINVAL 'too long' "${base[@]}" order=u32
printf 'xyz' >>"$order"
refuse EINVAL 'not a whole number of u32' "${base[@]}" order=u32
order=$tmp/twice
{ seq 0 98; echo 0; } >"$order"
refuse EINVAL 'entry 99 is 0 again' "${base[@]}" order=text
{ seq 0 98; echo 100; } >"$order"
refuse ERANGE 'entry 99 is 100' "${base[@]}" order=text
order=''
fails 'a payload that nobody asked for' sh -c "exec 3<>'$control'; printf 'plan ${base[*]}\n1 2 3\n' >&3; cat <&3"
is 'nothing was planned for these' "$(value "$mnt" plans.made)" "$before"
digest=$(value "$mnt" catalog.digest)
is 'the dataset is the right one' "$(ask "${base[@]}" "catalog=$digest" rank=1)" "$(ask "${base[@]}" rank=1)"
one_line 'another dataset' "catalog=0{32}.: the mount has another dataset, whose .catalog.digest. is $digest" \
    dealfs plan "$mnt" "${base[@]}" "catalog=$(printf %032d 0)"
one_line 'no digest' 'catalog=x.: must be a digest' dealfs plan "$mnt" "${base[@]}" catalog=x
exits 2 'words that are none' dealfs plan "$mnt" epoch
fails 'a file of a bad name' cat "$folder/epoch=0,ranks=0,batch=8"
like 'is in errors' "$(tail -1 "$mnt/.dealfs/errors")" 'plan/epoch=0,ranks=0,batch=8.*ERANGE'
errors=$(wc -l <"$mnt/.dealfs/errors")
fails 'a name that is no request' test -e "$folder/.hidden"
is 'is not' "$(wc -l <"$mnt/.dealfs/errors")" "$errors"

# --- after a crash ---
exec 4<"$file"
ok 'the server dies' kill -9 "$(value "$mnt" pids.server)"
is 'the same list from the next one' "$(ask "${base[@]}" rank=1)" "$list"
is 'and as a file' "$(cat "$file")" "$list"
is 'also where it was open' "$(cat <&4)" "$list"
exec 4<&-

# --- the order of a checkpoint ---
part=(epoch=3 under=class1 without=left)
printf 'class1/%s\n' "$(basename "$(find "$src/class1" -name '*.bin' | sort | head -n 1)")" >"$tmp/left"
upload_left() { request_at "$mnt" "$tmp/left" samples name=left; }
order_of() { ask "${part[@]}" reply=summary "$@" | grep -oE '"order":"[0-9a-f-]*"' | cut -d '"' -f 4; }
ok 'a list to leave out' upload_left
checkpoint=$(order_of ranks=4 batch=2)
like 'a summary has the order' "$checkpoint" '^[0-9a-f]{16}-[0-9a-f]{16}-[0-9a-f]{16}$'
is 'other ranks, another mode and tail are the same order' \
    "$(order_of ranks=3 batch=5 mode=regular tail=drop skip=8) $(order_of ranks=1 batch=1 mode=local)" \
    "$checkpoint $checkpoint"
resume() { ask "${part[@]}" batch=2 skip=8 "resume=$checkpoint" "$@"; }
is 'it is resumed on other ranks' "$(resume ranks=2 | wc -w)" \
    $(($(find "$src/class1" -type f | wc -l) - 1 - 8))
ok 'unmount' dealfs umount "$mnt"
find "$src/class1" -name '*.bin' | sort | sed -n 2p | xargs chmod 600
echo new >"$src/class2/new"
ok 'mount again: files have other modes, and one was added' mount_up -o ram=16M "$src" "$mnt"
ok 'a list to leave out' upload_left
is 'the samples of class1 are the same' "$(order_of ranks=2 batch=2)" "$checkpoint"
ok 'it is resumed' resume ranks=2
find "$src/class1" -name '*.bin' | sort | sed -n 3p | sed "s|^$src/||" >>"$tmp/left"
ok 'one more is left out' upload_left
refused() { # what, pattern, keys…
    local what=$1 pattern=$2
    shift 2
    one_line "$what" "resume.: this is another order than that of the checkpoint: $pattern\$" "$@"
}
refused 'another list to leave out is another order' '.without. leaves out other samples' resume ranks=2
refused 'so is another seed' '.without. leaves out other samples; epoch, seed, order or echo differ, .*' \
    resume ranks=2 seed=1
refused 'and other samples' 'the samples have another path, range or size, .*; .without. leaves .*' \
    ask epoch=3 ranks=2 batch=2 under=class2 "resume=$checkpoint"
one_line 'no order' 'resume=x.: must be .order. of a summary' ask "${part[@]}" ranks=2 batch=2 resume=x
echoed() { order_of batch=2 echo=2 echo_at="$1" "ranks=$2"; }
is 'echoed examples are one order on any ranks' "$(echoed example 4)" "$(echoed example 2)"
isnt 'echoed batches are not' "$(echoed batch 4)" "$(echoed batch 2)"
ok 'unmount' dealfs umount "$mnt"
nothing_left
done_testing
