"""Draws mutants: the same ones for the same tree and seed, at most one per file.

The seed orders the files. In each it chooses an operator among those that fit somewhere, and then one of the places.

    bound      a comparison includes or excludes its bound instead, or a 1 is not added or subtracted
    inverted   the condition of an `if` is the opposite
    ignored    an error is not returned or raised, or what follows it is done all the same
    removed    a lock, a reference count, a sync or one of several conditions is missing
    exchanged  two arguments of a call
"""
import random
import re

from mutant import functions

CALL = re.compile(r'(?<![\w.>])(\w+)\(([^()"\']+(?:\([^()"\']*\)[^()"\']*)*)\)')
COUNTED = r'\w+_(?:get|put|pin|unpin|hold|use|release|ref|unref)'
DROPPED = re.compile(rf'^ +(?:LOCK_SCOPE\(.*\)|pthread_mutex_lock\(.*\)|{COUNTED}\(.*\)|[\w.>\[\]-]*'
                     r'(?:users|refs|references|pins|count)(?:\+\+|--));$')
SYNC = re.compile(r'\b(?:fsync|fdatasync|fd_sync|os\.fsync)\([^()]*\)')
IF_C = re.compile(r'^( +)((?:\} else |else )?if) \((.*)\)( \{)?$')
IF_PY = re.compile(r'^( +)(if|elif) (.*):$')
RETURNED = re.compile(r'^ +return (?:-?err(?:or|no)|-E[A-Z]+|error \? .*|.*_fail\(.*|status);$')


def is_text(line):
    """Comments, strings and directives have nothing to change."""
    return line.lstrip().startswith(('/*', '*', '#', '//', '"'))


def split_at(text, separators):
    """The parts of an expression between separators outside of brackets."""
    parts, depth, begin, i = [], 0, 0, 0
    while i < len(text):
        depth += (text[i] in '([{') - (text[i] in ')]}')
        word = next((s for s in separators if depth == 0 and text.startswith(s, i)), None)
        if word:
            parts.append((text[begin:i], word))
            begin = i = i + len(word)
        else:
            i += 1
    return parts + [(text[begin:], '')]


def condition_of(line, python):
    """(before, condition, after) of a whole `if` in one line, or None."""
    match = (IF_PY if python else IF_C).match(line)
    if not match or match.group(3).count('(') != match.group(3).count(')') or '"' in line or "'" in line:
        return None
    return line[:match.start(3)], match.group(3), line[match.end(3):]


def bound(lines, i, python):
    other = {'<': '<=', '<=': '<', '>': '>=', '>=': '>'}
    line = lines[i].split('"')[0].split('/*')[0]
    for match in re.finditer(r' (<=?|>=?) ', line):
        yield 1, [lines[i][:match.start(1)] + other[match.group(1)] + lines[i][match.end(1):]]
    for match in re.finditer(r' [+-] 1\b(?![.\d])(?! <<)', line):
        yield 1, [lines[i][:match.start()] + lines[i][match.end():]]


def inverted(lines, i, python):
    parts = condition_of(lines[i], python)
    if parts:
        word = 'not ' if python else '!'
        plain = re.fullmatch(rf'{word}(\w[\w.>\[\]-]*(?:\([^()]*\))?)', parts[1])
        yield 1, [parts[0] + (plain.group(1) if plain else f'{word}({parts[1]})') + parts[2]]


def ignored(lines, i, python):
    if python:
        if re.match(r' +raise\b.*[^(,]$', lines[i]):
            yield 1, [re.sub(r'raise.*', 'pass', lines[i])]
        return
    parts = condition_of(lines[i], python)
    following = lines[i + 1] if i + 1 < len(lines) else ''
    if not parts or parts[2] != ')' or parts[0].strip() != 'if (':
        return
    indent = parts[0][:-len('if (')]
    if RETURNED.match(following):
        yield 2, [f'{indent}(void)({parts[1]});']
    elif parts[1] == '!error' and following.endswith(';'):
        yield 2, [indent + following.lstrip()]


def removed(lines, i, python):
    line = lines[i]
    if python and re.match(r' +with [\w.]*lock:$', line):
        yield 1, [re.sub(r'with.*', 'if True:', line)]
    if DROPPED.match(line):
        yield 1, []
    for match in SYNC.finditer(line):
        yield 1, [line[:match.start()] + '0' + line[match.end():]]
    parts = condition_of(line, python)
    words = (' and ', ' or ') if python else (' && ', ' || ')
    terms = split_at(parts[1], words) if parts else []
    if len(terms) > 1 and len({word for _, word in terms[:-1]}) == 1:
        for drop in range(len(terms)):
            yield 1, [parts[0] + terms[0][1].join(t for j, (t, _) in enumerate(terms) if j != drop) + parts[2]]


def exchanged(lines, i, python):
    for match in CALL.finditer(lines[i]):
        terms = [term.strip() for term, _ in split_at(match.group(2), (',',))]
        if match.group(1) in ('if', 'while', 'for', 'switch', 'sizeof', 'return') or '=' in match.group(2):
            continue
        for j in range(len(terms) - 1):
            if terms[j] != terms[j + 1] and '' not in terms:
                swapped = terms[:j] + [terms[j + 1], terms[j]] + terms[j + 2:]
                yield 1, [lines[i][:match.start(2)] + ', '.join(swapped) + lines[i][match.end(2):]]


OPERATORS = {f.__name__: f for f in (bound, inverted, ignored, removed, exchanged)}


def body_of(path, text, begin, end):
    """The lines of a function after its head."""
    lines = text[begin:end].split('\n')[:-1]
    first = next(i for i, line in enumerate(lines) if line.endswith(':') or line == '{') + 1
    return lines, first


def sites(path, text):
    """All places of a file, by operator: (function, its lines, index, number of old lines, new lines)."""
    found = {name: [] for name in OPERATORS}
    python = path.endswith('.py')
    for function, begin, end in functions(path, text):
        lines, first = body_of(path, text, begin, end)
        for i in range(first, len(lines)):
            if is_text(lines[i]):
                continue
            for name, operator in OPERATORS.items():
                found[name] += [(function, lines, i, n, new) for n, new in operator(lines, i, python)]
    return {name: places for name, places in found.items() if places}


def with_context(text, lines, i, n):
    """Numbers of lines around the old ones that make them unique in the function."""
    before, after = 0, 0
    while ('\n' + '\n'.join(lines) + '\n').count('\n' + '\n'.join(lines[i - before:i + n + after]) + '\n') > 1:
        before, after = (before + 1, after) if before <= after and i > before else (before, after + 1)
    return before, after


def stanza(path, operator, site, text):
    function, lines, i, n, new = site
    before, after = with_context(text, lines, i, n)
    name = f'{path.rsplit(".", 1)[0]}:{function}'
    out = [f'[{name}]', f'operator {operator}', f'fault  {FAULTS[operator]}', f'@@ {path} {function}']
    out += [' ' + line for line in lines[i - before:i]]
    out += ['-' + line for line in lines[i:i + n]] + ['+' + line for line in new]
    out += [' ' + line for line in lines[i + n:i + n + after]]
    return name, '\n'.join(out) + '\n'


FAULTS = {'bound': 'A bound is moved by one.', 'inverted': 'A condition is inverted.',
          'ignored': 'An error is ignored.', 'removed': 'A lock, a reference count, a sync or a condition is missing.',
          'exchanged': 'Two arguments are exchanged.'}


def draw(tree, seed, count, left_out):
    """The first `count` stanzas, without those named in `left_out`."""
    order = sorted(tree.sources())
    random.Random(seed).shuffle(order)
    for path in order:
        choice, text = random.Random(f'{seed} {path}'), tree.read(path)
        found = sites(path, text)
        if not found or count == 0:
            continue
        operator = choice.choice(sorted(found))
        name, drawn = stanza(path, operator, choice.choice(found[operator]), text)
        if name not in left_out:
            count -= 1
            yield drawn
