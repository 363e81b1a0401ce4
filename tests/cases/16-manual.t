#!/bin/bash
# What is installed and what is said of it: manual pages, --help, the README's options and the completion agree with the
# command; and the forms of mounting that mount(8) and fstab use.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

require_root
require unshare make groff python3
[ -f "$top_builddir/Makefile" ] || plan_skip 'this build has no Makefile to install from'
src=$tmp/src mnt=$tmp/mnt dest=$tmp/dest
make_files "$src" 20 10000
mkdir "$mnt"
ok 'make install' make -C "$top_builddir" -s install "DESTDIR=$dest"

# --- what is there ---
named() { sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p'; }
is 'the main commands' "$(dealfs --help | named | tr '\n' ' ')" \
    'mount run launch stage status top umount doctor demo '
commands=$(dealfs help all | named)
like 'the commands' " $(tr '\n' ' ' <<<"$commands")" \
    ' mount join umount run launch mounter enter status top log upgrade wait stage exchange shuffle index where verify'
installed() { # pattern of a path, executable or not
    local found
    found=$(find "$dest" \( -type f -o -type l \) -path "$dest$1")
    [ -n "$found" ] || { echo "no $1 is installed"; return 1; }
}
for path in '*/bin/dealfs' '*/dealfs/dealfs-keeper' '*/dealfs/dealfs-mounter' '*/dealfs/dealfs-feeder' \
    '*/dealfs/dealfs-lab' \
    '*/dealfs/dealfs-server' \
    '*/man1/dealfs.1*' '*/man5/dealfs-control.5*' '*/bash-completion/completions/dealfs' '*/fstab.example' \
    '*/dealfs.service' '*/loaders.md' '*/exchange.md' '*/glossary.md' '*/records.md' '*/slurm/train.sbatch' \
    '*/monitoring/dealfs.rules.yml' '*/kubernetes/join' \
    '*/slurm/join-loop' '*/slurm/prolog' '*/slurm/epilog' '*/examples/train.py' '*-packages/dealfs/torch/sampler.py' \
    '*/examples/read_plan.py' '*/examples/read-plan.sh' '*/examples/read-plan.c' \
    '*/mount.fuse.dealfs' '*/umount.fuse.dealfs'; do
    ok "installed: $path" installed "$path"
done
for command in $commands; do ok "installed: a page for $command" installed "*/man1/dealfs-$command.1*"; done
is 'and nothing that no one has named' "$(find "$dest" ! -type d | grep -Ev \
    -e '/bin/dealfs$|/dealfs/dealfs-(keeper|mounter|feeder|lab|resizer|server|courier)$' \
    -e '/man[15]/dealfs[-a-z]*\.[15]|/completions/dealfs$' \
    -e '/(fstab\.example|dealfs\.service)$' \
    -e '/(loaders|exchange|glossary|papers|records|scale|troubleshooting|versions)\.md$' \
    -e '/kubernetes/(README\.md|(dealfs|mounter)\.yaml|join)$' \
    -e '/monitoring/(README\.md|dealfs\.(rules\.yml|dashboard\.json))$' \
    -e '/slurm/[a-z.]*(-loop)?$|/examples/[a-z_-]*\.(py|sh|c)$|/u?mount\.fuse\.dealfs$' \
    -e '-packages/dealfs/(torch/)?[a-z_]*\.py$')" ''

# --- manual pages ---
formatted() { groff -man -rHY=0 -Tascii -P-c -P-b -P-u "$top_srcdir/cli/$1"; } # a page as text
well_formed() { # a page: groff has nothing to say, and what it makes has the sections
    local said text section
    said=$(groff -man -ww -Tutf8 -z "$1" 2>&1)
    [ -z "$said" ] || { echo "$said"; return 1; }
    text=$(formatted "${1##*/}") || return 1
    for section in NAME DESCRIPTION 'SEE ALSO'; do
        grep -qx "$section" <<<"$text" || { echo "no section $section"; return 1; }
    done
    grep -q 'glossary\.md' <<<"$text" || { echo 'no link to the glossary'; return 1; }
    grep -Eq '^ +dealfs[-a-z]* +- +[^ ]' <<<"$text" || { echo 'NAME is not what whatis wants'; return 1; }
}
pages_named() { # every page that SEE ALSO and the text name as dealfs's is there
    local page missing=''
    for page in $(grep -oE 'dealfs[\\a-z-]* ?\([15]\)' "$1" | tr -d '\\() ' | sed 's/[15]$/.&/' | sort -u); do
        [ -f "$top_srcdir/cli/$page" ] || missing+=" $page"
    done
    [ -z "$missing" ] || { echo "no such page:$missing"; return 1; }
}
for page in "$top_srcdir"/cli/*.[1-8]; do
    ok "${page##*/} is well formed" well_formed "$page"
    ok "${page##*/} names pages that are there" pages_named "$page"
done

# --- --help, against the pages ---
plain() { # the page of a command, on one line
    [ -e "$tmp/plain.$1" ] || formatted "dealfs-$1.1" | tr -s ' \n' ' ' >"$tmp/plain.$1"
    cat "$tmp/plain.$1"
}
words() { grep -oE -- '--?[a-z]+|[A-Z]{3,}' <<<"$1" | sort -u; } # options and arguments of a usage line
help_agrees() { # command: every word of the usage is in the page, every long option of the help, too
    local help usage page word missing=''
    help=$(dealfs "$1" --help) || { echo "status $?"; return 1; }
    usage=$(head -n 1 <<<"$help")
    [[ $usage == "usage: dealfs $1"* ]] || { echo "begins with: $usage"; return 1; }
    [ "$(dealfs help "$1")" = "$help" ] || { echo "dealfs help $1 is another"; return 1; }
    page=$(plain "$1")
    for word in $(words "$usage"; grep -oE -- '--[a-z-]+' <<<"$help"); do
        grep -qF -- "$word" <<<"$page" || missing+=" $word"
    done
    [ -z "$missing" ] || { echo "not in dealfs-$1.1:$missing"; return 1; }
}
page_agrees() { # every long option that the page's synopsis has is in the help
    local help word missing=''
    help=$(dealfs "$1" --help)
    for word in $(plain "$1" | sed 's/.*SYNOPSIS \(.*\) DESCRIPTION.*/\1/' | grep -oE -- '--[a-z]+'); do
        grep -qF -- "$word" <<<"$help" || missing+=" $word"
    done
    [ -z "$missing" ] || { echo "not in the help:$missing"; return 1; }
}
first_page=$(formatted dealfs.1 | tr -s ' \n' ' ')
for command in $commands; do
    ok "dealfs $command --help agrees with its page" help_agrees "$command"
    ok "the page of $command agrees with it" page_agrees "$command"
    exits 2 "dealfs $command with an option that is none" dealfs "$command" --frobnicate
    like 'which shows the usage' "$(cat "$tmp/.output")" "usage: dealfs $command"
    like "dealfs.1 has $command" "$first_page" "dealfs-$command\(1\)"
done
# --- the options of a page, each with its default: they are in the help ---
cat >"$tmp/options.py" <<'END'
import re, subprocess, sys
command, page = sys.argv[1:]
help = subprocess.run(['dealfs', command, '--help'], check=True, stdout=subprocess.PIPE, text=True).stdout
options = re.search(r'^\.SH OPTIONS\n(.*?)(?=^\.SH )', open(page).read(), re.S | re.M)
if not options:
    sys.exit()
bad = []
for item in re.split(r'^\.TP\n', options[1], flags=re.M)[1:]:
    tag, _, text = item.partition('\n')
    tag = re.sub(r'^\.[BIR]+ |"', '', tag.replace('\\-', '-'))
    names = re.findall(r'(?<![a-z-])--?[A-Za-z][a-z-]*', tag) if tag[0] == '-' else re.findall(r'^[a-z_]+(?==)', tag)
    for name in names:
        shown = re.search(r'^  (?:-o |-[A-Za-z], )?' + re.escape(name) + r'(?![a-z_-]).*\n(?:   .*\n)*', help, re.M)
        if not shown:
            bad.append(f'{name}: not in the help')
    default = re.search(r'^Default: ([0-9][0-9A-Za-z.]*?|unlimited|any|all)( number| files)?\.?$', text, re.M)
    if names and shown and default and default[1] not in re.findall(r'[0-9][0-9A-Za-z.]*|[a-z]+', shown[0]):
        bad.append(f'{names[-1]}: the default {default[1]} is not in: {shown[0].strip()}')
print('\n'.join(bad))
END
for command in $commands; do
    is "the options of dealfs-$command.1 are in the help, with their defaults" \
        "$(python3 "$tmp/options.py" "$command" "$top_srcdir/cli/dealfs-$command.1")" ''
done

# --- the keys of `plan`: the page tells them, and no others ---
keys=$(dealfs plan --help | sed -n 's/^  \([a-z_]*=[^ ]*\) .*/\1/p')
ok 'the keys of plan were found' test "$(wc -w <<<"$keys")" -ge 20
is 'keys of plan in its page' "$(formatted dealfs-plan.1 |
    sed -n '/^KEYS/,/^EXIT/s/^ \{7\}\([a-z_]*=[^ ]*\)\( .*\)*$/\1/p' | sort)" "$(sort <<<"$keys")"

for command in exchange shuffle; do
    keys_of=$(dealfs "$command" --help | sed -n 's/^  \([a-z]*\)=.*/\1/p' | sort)
    is "keys of $command in its page" "$(formatted "dealfs-$command.1" |
        sed -n '/^KEYS/,/^EXIT/s/^ \{7\}\([a-z]*\)=.*/\1/p' | sort)" "$keys_of"
done

like 'dealfs --version' "$(dealfs --version)" '^dealfs [0-9]+\.[0-9]'

# --- mount options: page, completion and help have all that the command takes, the README some ---
mount_help=$(dealfs mount --help)
options=$(sed -n 's/^  -o \([a-z_]*\).*/\1/p' <<<"$mount_help")
ok 'the table of options was found' test "$(wc -w <<<"$options")" -ge 12
page=$(plain mount)
readme=$(sed -n '/^### Options of/,/^###* [^O]/p' "$top_srcdir/README.md")
for option in $options; do
    like "$option: in the page" "$page" "(^|[ \"])$option( |=)"
done
shown=$(grep -oE '^\| `[a-z_]+' <<<"$readme" | tr -d '|` ')
ok 'the README shows a few of them, eight at most' test "$(wc -w <<<"$shown")" -ge 4 -a "$(wc -w <<<"$shown")" -le 8
for option in $shown; do
    like "the README's $option is one" " $(tr '\n' ' ' <<<"$options")" " $option "
done
one_line 'remount is refused by name' 'remount=1: a mount cannot be changed' \
    dealfs mount -o remount=1 "$src" "$mnt"
for option in ram=x ram= ssd ssd_size=1G rescan=maybe zstd=99 source_threads=0 peer_timeout=0 \
    request_memory=10% nodes=2 allow_other=1 owner=no-such-user state= frobnicate; do
    one_line "$option is refused by name" "${option%%=*}" dealfs mount -o "$option" "$src" "$mnt"
done
nothing_left 'nothing is left of what was refused'

# --- slips of the hand ---
like 'an option in the way of other programs' "$(dealfs mount --ram 3G "$src" "$mnt" 2>&1)" \
    '--ram: unknown option. Did you mean `-o ram=3G`\?'
like 'with its value' "$(dealfs mount --allow_othr "$src" "$mnt" 2>&1)" 'Did you mean `-o allow_other`\?'
like 'also of another command' "$(dealfs run --ram=3G "$src" "$mnt" -- true 2>&1)" 'Did you mean `-o ram=3G`\?'
like 'an unknown letter among others' "$(dealfs umount -xl "$mnt" 2>&1)" 'option -x: unknown option'
like 'one letter at the wrong place' "$(dealfs mount -o rma=3G "$src" "$mnt" 2>&1)" \
    'rma=3G: unknown option\. Did you mean `ram=`'
unlike 'a distant word has no near one' "$(dealfs mount -o frobnicate=1 "$src" "$mnt" 2>&1)" 'Did you mean'
exits 2 'a command that is none' dealfs stag "$mnt"
like 'the nearest is named' "$(cat "$tmp/.output")" 'stag: no such command. Did you mean `stage`\?'
unlike 'where there is one' "$(dealfs frobnicate 2>&1)" 'Did you mean'
like 'the source is a bucket' "$(dealfs mount s3://bucket/data "$mnt" 2>&1)" \
    's3://bucket/data: not a directory\. .*identity=mtime'

# --- the completion ---
cat >"$tmp/complete" <<'END'
#!/bin/bash
# COMPLETION LINE: what bash would offer at the end of the line, one a line. Words are split as readline does.
. "$1" || exit 1
COMP_LINE=$2 COMP_POINT=${#2}
words=$(sed 's/\([=:]\)/ \1 /g' <<<"$2")
read -ra COMP_WORDS <<<"$words"
[[ $2 == *[\ =:] ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
function=$(complete -p dealfs | sed 's/.*-F \([^ ]*\).*/\1/')
"$function" dealfs "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
END
installed_completion=$(find "$dest" -path '*/completions/dealfs')
complete_line() { bash "$tmp/complete" "$installed_completion" "$1"; }
ok 'it can be loaded' bash -uc '. "$1" && complete -p dealfs' bash "$installed_completion"
is 'every command' "$(complete_line 'dealfs ' | grep -xF "$commands" | wc -l)" "$(wc -w <<<"$commands")"
is 'keys of plan' "$(complete_line "dealfs plan $tmp/mnt " | sort)" "$(sed 's/=.*/=/' <<<"$keys" | sort)"
for command in exchange shuffle; do
    is "keys of $command" "$(complete_line "dealfs $command $tmp/mnt " | sort)" \
        "$(dealfs "$command" --help | sed -n 's/^  \([a-z]*=\).*/\1/p' | sort)"
done
is 'part of a command' "$(complete_line 'dealfs um')" umount
is 'every option of mount' "$(complete_line 'dealfs mount -o ' | tr -d = | sort)" "$(sort <<<"$options")"
is 'an option of mount' "$(complete_line 'dealfs mount -o cach')" cache_id=
is 'a second option' "$(complete_line 'dealfs mount -o ram=1G,cach' | sed 's/.*,//')" cache_id=
is 'the values of an option' \
    "$(complete_line 'dealfs mount -o rescan=' | sort | tr '\n' ' ')" 'always auto names never '
is 'a directory' "$(complete_line "dealfs mount $tmp/sr")" "$tmp/src"
for command in $commands; do
    offered=" $(complete_line "dealfs $command --" | tr '\n' ' ')"
    for word in $(dealfs "$command" --help | grep -oE -- '^  (-[a-zA-Z], )?--[a-z-]+' | grep -oE -- '--.*'); do
        like "$command $word" "$offered" " $word "
    done
done
ok 'mount' mount_up -o feed=1M,sampler=torch,ranks=1,batch=1,resize=64 "$src" "$tmp/mounted"
ok 'a plan' dealfs plan "$tmp/mounted" epoch=1 ranks=1 batch=1 feed=yes
documented() { python3 "$top_srcdir/tests/lib/documented.py" "$top_srcdir/cli/dealfs-control.5" "$top_srcdir" "$1"; }
is 'dealfs-control(5) describes status and metrics, and nothing else' "$(documented "$tmp/mounted" 2>&1)" ''
ok 'mount with a blank in its name' mount_up "$src" "$tmp/with blank"
# shellcheck disable=SC2016
ok 'mount with a command in its name' mount_up "$src" "$tmp/"'evil $(touch $TMPDIR_EVIL) * `touch $TMPDIR_EVIL`'
for command in umount status wait stage exchange shuffle index where verify enter; do
    like "$command: mountpoints" "$(complete_line "dealfs $command $tmp/m")" "^$tmp/mounted"
done
like 'one with a blank' "$(complete_line "dealfs status $tmp/w")" 'with.? blank'
export TMPDIR_EVIL=$tmp/touched
like 'one with a command' "$(complete_line "dealfs status $tmp/e")" 'evil \$\(touch'
fails 'which is not run' test -e "$tmp/touched"
ok 'unmount' dealfs umount "$tmp"/evil*
ok 'unmount' dealfs umount "$tmp/mounted"
ok 'unmount' dealfs umount "$tmp/with blank"

# --- the forms of mounting ---
ok 'as the generic helper calls it' dealfs "$src" "$mnt" -o rw,nosuid,nodev,ram=8M
like 'it is read-only all the same' "$(findmnt -nfo OPTIONS "$mnt")" '^ro'
same 'it is the source' "$src" "$mnt"
ok 'unmount' dealfs umount "$mnt"
ln -s "$top_builddir/dealfs" "$tmp/mount.fuse.dealfs"
ln -s "$top_builddir/dealfs" "$tmp/umount.fuse.dealfs"
ok 'as mount(8) calls its helper' "$tmp/mount.fuse.dealfs" "$src" "$mnt" \
    -s -v -n -o rw,noauto,x-systemd.automount,_netdev,nofail,user=root,ram=8M -t fuse.dealfs
ok 'it is mounted' mounted "$mnt"
ok 'as umount(8) calls its helper' "$tmp/umount.fuse.dealfs" "$mnt" -n -v -t fuse.dealfs
fails 'it is gone' mounted "$mnt"
many=()
for i in {1..17}; do many+=(-o "x-$i"); done
exits 2 'an 18th -o is looked at' "$tmp/mount.fuse.dealfs" "$src" "$mnt" "${many[@]}" -o frobnicate
ok 'with -f, mount(8) wants it only checked' "$tmp/mount.fuse.dealfs" "$src" "$mnt" -f -o ram=8M
fails 'nothing is mounted' mounted "$mnt"
nothing_left 'nothing is left of that'

# mount(8) looks for helpers in /sbin: in a mount namespace where a copy of it with ours stands there.
sbin=$tmp/sbin
cat >"$tmp/inside" <<'END'
#!/bin/bash
# In the namespace: SRC MNT SBIN BUILD FSTAB. Other mounts have copies here: nothing may name more than our own.
src=$1 mnt=$2 sbin=$3 build=$4 fstab=$5
mount -t tmpfs tmpfs "$sbin" && mkdir "$sbin/upper" "$sbin/work" &&
    mount -t overlay -o "lowerdir=$(realpath /sbin),upperdir=$sbin/upper,workdir=$sbin/work" \
        overlay "$(realpath /sbin)" &&
    ln -sf "$build/dealfs" /sbin/mount.fuse.dealfs && ln -sf "$build/dealfs" /sbin/umount.fuse.dealfs || exit 99
escape() { sed 's/\\/\\134/g; s/ /\\040/g; s/\t/\\011/g' <<<"$1"; }
options=rw,noauto,nofail,_netdev,x-systemd.requires-mounts-for=/,ram=8M
echo "$(escape "$src") $(escape "$mnt") fuse.dealfs $options 0 0" >"$fstab"
try() {
    local what=$1
    shift
    if "$@" >"$fstab.out" 2>&1; then
        echo "ok $what"
    else
        echo "failed $what: $(head -3 "$fstab.out")"
    fi
}
not() { ! "$@"; }
ended() { wait_until $((tap_deadline * 1000000)) not findmnt "$mnt"; }
try 'mount -T FSTAB MOUNTPOINT' mount -T "$fstab" "$mnt"
try 'it is dealfs' test "$(findmnt -nfo FSTYPE "$mnt")" = fuse.dealfs
try 'it is the source' diff -r -x .dealfs "$src" "$mnt"
try 'a second time is refused' not mount -T "$fstab" "$mnt"
try 'umount' umount "$mnt"
try 'it is gone' ended
try 'mount -T FSTAB SOURCE' mount -T "$fstab" "$src"
try 'umount' umount "$mnt"
try 'mount -a -T FSTAB passes noauto over' mount -a -T "$fstab"
try 'nothing is mounted' not findmnt "$mnt"
sed -i 's/noauto,//' "$fstab"
try 'mount -a -T FSTAB' mount -a -T "$fstab"
try 'it is mounted' findmnt "$mnt"
try 'mount -a again has nothing to do' mount -a -T "$fstab"
try 'umount' umount "$mnt"
try 'nothing is mounted' not findmnt "$mnt"
END
mkdir "$sbin" "$tmp/src blank" "$tmp/mnt blank"
echo x >"$tmp/src blank/file"
export tap_deadline && export -f wait_until
for blank in '' ' blank'; do
    PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        unshare -m --propagation private bash "$tmp/inside" "$tmp/src$blank" "$tmp/mnt$blank" \
        "$sbin" "$top_builddir" "$tmp/fstab" >"$tmp/results" 2>"$tmp/results.err"
    is "fstab${blank:+ with a blank}: the helpers stood in /sbin" "$(cat "$tmp/results.err")" ''
    while IFS= read -r line; do
        is "fstab${blank:+ with a blank}: ${line#* }" "${line%% *}" ok
    done <"$tmp/results"
    is 'all of it was tried' "$(wc -l <"$tmp/results")" 15
    nothing_left 'nothing is left'
done

# --- away ---
ok 'make uninstall' make -C "$top_builddir" -s uninstall "DESTDIR=$dest"
is 'leaves no file' "$(find "$dest" ! -type d)" ''
is 'nor a directory of ours' "$(find "$dest" -type d -name '*dealfs*')" ''
nothing_left
done_testing
