#!/bin/bash
# `dealfs top`: on a terminal, with keys, another size, signals, a mount that hangs and one that goes away; the terminal
# is as it was afterwards, always. Elsewhere plain lines, or JSON.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99

src=$tmp/src
make_files "$src" 40 20000
cp -r "$src" "$tmp/src2"
faults=$tmp/faults
: >"$faults"
DEALFS_SOURCE_FAULTS="file=$faults" mount_up -o ram=20M "$src" "$tmp/one"
DEALFS_PATIENCE=3600 mount_up -o ram=20M "$tmp/src2" "$tmp/two" # a server that is stopped is not replaced

# One sample waits for the source, and another one is read after it: the slow one is named until its time of ten seconds
# is over. Where another one took longer, or the time was over too soon, it is tried again with one that waits longer.
mapfile -t samples <"$tmp/one/.dealfs/samples"
delay=900 tried=0
slow_is_named() {
    slow=${samples[tried]}
    set_faults "delay=$delay,delay_match=$slow"
    cat "$tmp/one/$slow" "$tmp/one/${samples[39 - tried]}" >/dev/null
    slowest=$(value "$tmp/one" slowest.us)
    top=$(dealfs top --once "$tmp/one") json=$(dealfs top --once --json "$tmp/one")
    tried=$((tried + 1)) delay=$((delay * 2))
    [ "$(value "$tmp/one" slowest.path) $(value "$tmp/one" slowest.from)" = "$slow source" ]
}
ok 'status names the slowest sample' wait_for slow_is_named
ok 'and how long it took' test "$slowest" -ge $((delay * 500))
like 'top names it' "$top" $'\n  slowest sample: [0-9]+ ms from source: '"$slow\$"
like 'as JSON' "$json" '"slowest_read":.?\{"path":.?"'"$slow"'","from":.?"source","ms":.?[0-9.]+\}'
set_faults ''

# A terminal of its own for `dealfs top ARGUMENTS`, and what is done there: `see TEXT`, `keys TEXT`, `signal NUMBER`,
# `size ROWS COLUMNS`, `stopped`, `run COMMAND`, `end STATUS`.
cat >"$tmp/terminal.py" <<'END'
import fcntl, os, pty, re, select, struct, subprocess, sys, termios
cut = sys.argv.index('--')
arguments, steps = sys.argv[1:cut], sys.argv[cut + 1:]
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 900, 160, 0, 0))  # room for mounts of others
before = termios.tcgetattr(slave)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in 0, 1, 2:
        os.dup2(slave, fd)
    os.execvp('dealfs', ['dealfs', 'top'] + arguments)
seen, mark = '', 0
def take(seconds=None):
    global seen
    if select.select([master], [], [], seconds)[0]:
        seen += os.read(master, 65536).decode(errors='replace')
def see(pattern):
    global mark
    while not (found := re.search(pattern, seen[mark:], re.S)):
        take()
    mark += found.end()
while steps:
    verb = steps.pop(0)
    if verb == 'see':
        see(steps.pop(0))
    elif verb == 'keys':
        os.write(master, steps.pop(0).encode())
    elif verb == 'size':
        rows, columns = int(steps.pop(0)), int(steps.pop(0))
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
        mark, fits = len(seen), False
        while not fits:  # until then there may be frames from before
            see('\x1b\\[H.*?\x1b\\[J')
            frame = seen[:mark].rpartition('\x1b[H')[2].partition('\x1b[J')[0].split('\r\n')
            widest = max(len(line.replace('\x1b[K', '')) for line in frame)
            fits = len(frame) <= rows and widest <= columns
    elif verb == 'signal':
        os.kill(pid, int(steps.pop(0)))
    elif verb == 'stopped':
        os.waitpid(pid, os.WUNTRACED)
        if termios.tcgetattr(slave)[3] != before[3]:
            sys.exit('stopped, and the terminal is not as it was')
    elif verb == 'run':
        subprocess.run(steps.pop(0), shell=True, check=True)
    elif verb == 'end':
        expected, ended = int(steps.pop(0)), 0
        while not ended:
            take(0.1)
            ended, status = os.waitpid(pid, os.WNOHANG)
        os.write(slave, b'the end of all that it has written')
        see('the end of all that it has written')
        if os.waitstatus_to_exitcode(status) != expected:
            sys.exit(f'status {os.waitstatus_to_exitcode(status)}: {seen[mark:]!r}')
if termios.tcgetattr(slave) != before:
    sys.exit('the terminal is not as it was')
if seen.count('\x1b[?1049h') != seen.count('\x1b[?1049l') or seen.count('\x1b[?25l') != seen.count('\x1b[?25h'):
    sys.exit('the other screen is not left')
END
terminal() { python3 "$tmp/terminal.py" "$@"; }

ok 'all mounts are shown, q ends it' terminal -- see 'mounts .*/one .*/two ' keys q end 0
ok 'one mount alone; s sorts, r goes back' \
    terminal "$tmp/one" -- see '1 mount ' keys s see 'by files' keys s see 'by bytes' keys r see 'by name' keys q end 0
ok 'a small terminal, and a wide one' terminal -- see '/two' size 4 30 size 900 200 see '/two' keys q end 0
ok 'Ctrl-C' terminal -- see '/two' keys $'\003' end 0
ok 'SIGTERM' terminal -- see '/two' signal 15 end 0
ok 'SIGHUP' terminal -- see '/two' signal 1 end 0
ok 'Ctrl-Z, and on' terminal -- see '/two' keys $'\032' stopped signal 18 see '/two' keys q end 0
ok 'what kills it' terminal -- see '/two' signal 6 end -6

server=$(value "$tmp/two" pids.server)
ok 'a mount that hangs does not keep others from being shown' terminal -- see '/two' \
    run "kill -STOP $server" see '/two *does not answer' see '/one *[0-9 ]' keys q end 0
kill -CONT "$server"
ok 'it answers again' wait_for cat "$tmp/two/.dealfs/node"

cat >"$tmp/read.py" <<'END'
import json, sys, time
mnt = sys.argv[1]
names = open(mnt + '/.dealfs/samples').read().splitlines()
with open(mnt + '/.dealfs/control', 'r+b', buffering=0) as f:
    f.write(b'plan epoch=7 ranks=1 batch=4 rank=0 feed=yes\n')
    order = [int(line) for line in f.read().split()]
while not json.load(open(mnt + '/.dealfs/status'))['feed']['plans'][0]['ranks']:
    time.sleep(0.02)
for sample in order[:int(sys.argv[2])]:
    open(f'{mnt}/{names[sample]}', 'rb').read()
END
ok 'a rank that reads' terminal "$tmp/one" -- see '/one' run "python3 $tmp/read.py $tmp/one 20" \
    see 'rank 0 +7 +[1-9]' keys q end 0
out=$(dealfs top --once "$tmp/one" </dev/null | cat)
like 'plain lines' "$out" $'^NODE, RANK.*\n.*/one .*\n  rank 0 +7 +[0-9]+%'
unlike 'without drawing' "$out" $'\033'
out=$(dealfs top "$tmp/one" </dev/null | head -8)
is 'more than once' "$(grep -c '^NODE' <<<"$out")" 2
is 'as JSON' "$(dealfs top --once --json | python3 -c '
import json, sys
mounts = [node for node in json.load(sys.stdin) if node["mountpoint"].startswith(sys.argv[1])]
print(*[len(node["ranks"]) for node in mounts])' "$tmp")" '1 0'
one_line 'no mount' 'nothing is mounted there' dealfs top "$tmp/src"
exits 2 'two mountpoints' dealfs top a b
is_over() { [ -z "$(value "$tmp/one" slowest 2>/dev/null)" ]; }
ok 'what was slow is not named for ever' wait_for is_over
ok 'a mount that goes away ends it' terminal "$tmp/two" -- see '/two' run "dealfs umount $tmp/two" end 1
ok 'umount' dealfs umount "$tmp/one"
nothing_left
done_testing
