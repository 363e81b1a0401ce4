#!/usr/bin/python3
"""Compares etc/troubleshooting.md with the messages in the sources: messages.py TOP
quoted|health|tested. Prints what is wrong, then whether it has found anything to compare."""
import ast
import glob
import os
import re
import sys

top, what = sys.argv[1:]
LITERALS = r'"((?:[^"\\]|\\.)*)"(?:\s*(?:PRI[a-zA-Z0-9]+\s*)?"((?:[^"\\]|\\.)*)")*'
PIECE = re.compile(r'(PRI[a-zA-Z0-9]+)|"((?:[^"\\]|\\.)*)"')


def texts_of_c(path, after=''):
    """Of adjacent literals; what a directive stands for is `…`."""
    with open(path, encoding='utf-8') as f:
        source = re.sub(r"/\*.*?\*/|'(?:\\.|[^\\'])'|\\\n", ' ', f.read(), flags=re.DOTALL)
    for literals in re.finditer(f'{after}(?P<literals>{LITERALS})', source):
        joined = ''.join('u' if macro else text for macro, text in PIECE.findall(literals['literals']))
        joined = re.sub(r'\\(.)', r'\1', joined).replace('%%', '\0')
        yield re.sub(r'%[-+#0-9.*]*[hljz]*[a-zA-Z]', '…', joined).replace('\0', '%')


def texts_of_python(path):
    with open(path, encoding='utf-8') as f:
        tree = ast.parse(f.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield ''.join(v.value if isinstance(v, ast.Constant) else '…' for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def files(*patterns):
    return [path for pattern in patterns for path in glob.glob(f'{top}/{pattern}', recursive=True)]


def pattern(message):
    return re.compile('.*'.join(map(re.escape, message.split('…'))), re.DOTALL)


with open(f'{top}/etc/troubleshooting.md', encoding='utf-8') as f:
    rows = [re.split(r'(?<!\\)\|', line)[1:-1] for line in f if line.startswith('| `')]
short = [row for row in rows if len(row) != 3 or not all(cell.strip() for cell in row)]
quoted = [row[0].strip().strip('`') for row in rows]
if what == 'quoted':
    said = {os.strerror(number) for number in range(1, 134)}
    for path in files('cli/**/*.c', 'fs/**/*.[ch]', 'mpi/*.c'):
        said.update(texts_of_c(path))
    for path in files('etc/python/**/*.py'):
        said.update(texts_of_python(path))
    for message in quoted:
        if not any(pattern(message).search(text) for text in said):
            print('not in the sources:', message)
    for row in short:
        print('not three cells:', row)
    print(len(rows) > 40)
elif what == 'tested':
    # A test asks for a message by words in a row of it, between the names and numbers: all of them, or four.
    asked, missing = '', []
    for path in set(files('tests/**/*.t', 'tests/**/*.c', 'tests/**/*.py')) - {__file__}:
        with open(path, encoding='utf-8', errors='replace') as f:
            asked += re.sub(r'\\(?=\W)', '', f.read())
    for message in quoted:
        runs = [piece.strip(' :;,.').split() for piece in message.split('…')]
        most = min(4, max(map(len, runs)))
        if not any(' '.join(run[at:at + most]) in asked
                   for run in runs for at in range(len(run) - most + 1)):
            missing.append(message)
    for message in missing:
        print('no test asks for it:', message)
    print(len(quoted) > 40)
else:
    sentences = list(texts_of_c(f'{top}/fs/control/health.c', r'add_sentence\([^";]*'))
    for text in sentences:
        if not any(pattern(message).search(text) for message in quoted):
            print('not explained:', text)
    print(len(sentences) > 20)
