"""Mutants: planted faults of the product. Each is a stanza of a text file:

    [NAME]
    commit 5e57662         the commit whose repair it takes back; or: operator bound
    fault  What is wrong then, in one line.
    @@ FILE FUNCTION
     a line that stays
    -a line that is replaced
    +a line in its place

`@@` begins a replacement; there may be several. Its old lines follow each other in FUNCTION of FILE. If that file no
longer has such a function, all files are searched. They must be there exactly once.
"""
import collections
import os
import re

FOLDERS = ('cli', 'fs', 'mpi', 'etc/python')
Replacement = collections.namedtuple('Replacement', 'file function old new')
# The lines before the body of a C function: it begins in the first column and has neither statements nor initializers.
HEAD_C = re.compile(r'^(?![\s#/*}])[^;{}=]*?\b(\w+)\([^;{}]*\)\n\{\n', re.M)


class DoesNotApply(Exception):
    pass


class Mutant:
    def __init__(self, name):
        self.name = name
        self.words = {}  # commit or operator, fault
        self.replacements = []

    def folders(self):
        return {os.path.dirname(r.file) for r in self.replacements}

    def apply(self, tree):
        """The new text of each file that it changes, by path."""
        texts = {}
        for r in self.replacements:
            path, at = find_place(tree, texts, r)
            text = texts.get(path) or tree.read(path)
            texts[path] = text[:at] + r.new + text[at + len(r.old):]
        return texts


class Tree:
    def __init__(self, top):
        self.top = top

    def read(self, path):
        with open(os.path.join(self.top, path), encoding='utf-8') as f:
            return f.read()

    def sources(self):
        for folder in FOLDERS:
            for at, folders, names in os.walk(os.path.join(self.top, folder)):
                folders.sort()
                for name in sorted(names):
                    if name.endswith('.py' if folder == 'etc/python' else '.c'):
                        yield os.path.relpath(os.path.join(at, name), self.top)


def functions(path, text):
    """(name, begin, end) of each function; nested ones of Python are parts of the outer one as well."""
    if path.endswith('.py'):
        yield from functions_py(text)
        return
    for head in HEAD_C.finditer(text):
        yield head.group(1), head.start(), text.index('\n}\n', head.end() - 1) + 3


def functions_py(text):
    for head in re.finditer(r'^( *)def (\w+)\(', text, re.M):
        body = text.index('\n', head.end()) + 1
        after = re.compile(rf'^ {{0,{len(head.group(1))}}}[^\s)]', re.M).search(text, body)
        yield head.group(2), head.start(), after.start() if after else len(text)


def places(path, text, function, old):
    """Where the old lines are in functions of that name."""
    found = set()
    for name, begin, end in functions(path, text):
        at = text.find(old, begin, end) if name == function else -1
        while at >= 0:
            if at == 0 or text[at - 1] == '\n':
                found.add(at)
            at = text.find(old, at + 1, end)
    return found


def has_function(path, text, function):
    return function in text and any(name == function for name, _, _ in functions(path, text))


def find_place(tree, texts, r):
    def text_of(path):
        return texts.get(path) or tree.read(path)

    path = r.file
    if os.path.exists(os.path.join(tree.top, path)) and has_function(path, text_of(path), r.function):
        found = [(path, at) for at in places(path, text_of(path), r.function, r.old)]
    else:
        found = [(path, at) for path in tree.sources() for at in places(path, text_of(path), r.function, r.old)]
    if len(found) != 1:
        raise DoesNotApply(f'{r.file}: the old lines are {len(found)} times in {r.function}')
    return found[0]


def take_replacement(head, lines):
    _, file, function = head.split()
    old = ''.join(line[1:] + '\n' for line in lines if line[:1] in '- ')
    new = ''.join(line[1:] + '\n' for line in lines if line[:1] in '+ ')
    return Replacement(file, function, old, new)


def parse(text):
    mutants, lines, head = [], [], None
    for line in [line for line in text.split('\n') if not line.startswith('#')] + ['']:
        if head and line[:1] in ('+', '-', ' '):
            lines.append(line)
            continue
        if head:
            mutants[-1].replacements.append(take_replacement(head, lines))
        lines, head = [], line if line.startswith('@@ ') else None
        if line.startswith('['):
            mutants.append(Mutant(line[1:-1]))
        elif not head and ' ' in line:
            word, value = line.split(None, 1)
            mutants[-1].words[word] = value
    return mutants


def load(path):
    with open(path, encoding='utf-8') as f:
        return parse(f.read())
