"""What processes with the rights of root have opened below a directory, by strace's account.

usage: grep '' TRACE… /dev/null | traced.py DIRECTORY MOUNTPOINT…

Each TRACE is of `strace -f -y -e trace=/open,/set.*uid,/clone,/fork`, of one command: numbers of processes are unique
in one trace, but a later command may use them again. A process counts as root until all three of its user ids are
another's: until then it could go back. Of the mountpoints, and of the directories on the way to them, O_PATH
descriptors may be opened. Prints the calls that are not allowed, and a line when no process has become another user.
"""
import os
import re
import sys

CALL = re.compile(r'^([^:]+:\d+) +(?:<\.\.\. )?(\w+)(?: resumed>|\()(.*)$')
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')


def lines(file):
    """(process, call, rest), with unfinished calls put together where they ended."""
    begun = {}
    for line in file:
        m = CALL.match(line)
        if not m:
            continue
        process, call, rest = m[1], m[2], m[3]
        if rest.endswith('<unfinished ...>'):
            begun[process] = rest[:-len('<unfinished ...>')]
            if 'open' not in call:
                continue
        elif 'resumed>' in line:
            if 'open' in call:
                continue  # it was seen when it began
            rest = begun.pop(process, '') + rest
        yield process, call, rest


def parents(trace):
    of = {}
    for process, call, rest in trace:
        m = re.search(r'= (\d+)$', rest)
        if m and ('clone' in call or 'fork' in call):
            of[process.split(':')[0] + ':' + m[1]] = process
    return of


def path_of(call, rest):
    name = QUOTED.search(rest)
    if not name:
        return ''
    path = name[1].encode().decode('unicode_escape', 'replace')
    directory = re.match(r'(?:AT_FDCWD|\d+)<([^>]*)>', rest)
    if not path.startswith('/') and directory and call != 'open':
        path = directory[1] + '/' + path
    return os.path.normpath(path)


def main():
    directory, mountpoints = sys.argv[1], sys.argv[2:]
    allowed = {directory}
    for path in mountpoints:
        while path.startswith(directory):
            allowed.add(path)
            path = os.path.dirname(path)
    trace = list(lines(sys.stdin))
    parent, user, became = parents(trace), {}, 0
    for process, call, rest in trace:
        if process not in user:
            user[process] = user.get(parent.get(process), 0)
        if re.match(r'set(res)?uid', call) and rest.endswith('= 0'):
            ids = re.match(r'([-\d, ]+)\)', rest)
            numbers = [int(n) for n in ids[1].split(',')] if ids else []
            if numbers and all(n > 0 for n in numbers) and user[process] == 0:
                user[process] = numbers[0]
                became += 1
        if not call.startswith('open') or user[process] != 0:
            continue
        path = path_of(call, rest)
        inside = path == directory or path.startswith(directory + '/')
        if inside and not ('O_PATH' in rest and path in allowed):
            print(process, call, rest)
    if not became:
        print('no process has become another user')


main()
