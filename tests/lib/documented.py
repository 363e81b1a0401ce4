"""What dealfs-control(5) and a mount do not agree on: documented.py PAGE SOURCES MOUNTPOINT.

Prints each field of `status` and each metric that the page does not describe, and those that it describes and that are
not in the sources."""
import glob, json, re, sys

page, sources, mount = sys.argv[1:]
places = ('ram', 'ssd', 'peer', 'source')


def described(section):
    """The names in the tags of a section of the page."""
    text = re.search(rf'^\.SH {section}\n(.*?)^\.SH ', open(page).read(), re.M | re.S).group(1)
    return {name for tag in re.findall(r'^\.TP\n\.BR? (.*)', text, re.M) for name in re.split(r'[" ,]+', tag) if name}


def fields(value, path=''):
    """The paths of all values, with the page's words for names that are data."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            outer = path.split('.')[-1]
            if not path and key in ('ram', 'ssd'):
                key = 'TIER'
            elif outer in ('reads', 'bytes', 'waits') and key in places:
                key = 'PLACE'
            elif path in ('errors', 'resize.passed'):
                key = {'errors': 'ERRNO'}.get(path, 'REASON')
            elif path == 'world[].move':
                key = 'NUMBER'
            elif path == 'plans.last[]':
                key = 'KEY'
                inner = 0
            yield from fields(inner, f'{path}.{key}' if path else key)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from fields(inner, path + '[]')
    elif not isinstance(value, (dict, list)):
        yield path


status, metrics = described('STATUS'), described('METRICS')
code = ''.join(open(name).read() for name in glob.glob(sources + '/fs/*/*.[ch]'))
table = dict(re.findall(r'^    \{"(\w+)", [A-Z]+, "([^"]+)"', open(sources + '/fs/control/metrics.c').read(), re.M))
for path in sorted(set(fields(json.load(open(mount + '/.dealfs/status')))) - status):
    print(f'status has {path}, which the page does not describe')
for path in sorted(status):
    last = path.split('.')[-1].replace('[]', '')
    if last.islower() and f'"{last}"' not in code and f'NUMBER({last})' not in code:
        print(f'the page describes {path}, which status does not have')
names = {re.sub(r'\{.*', '', name) for name in metrics}
shown = set(re.findall(r'^# TYPE dealfs_(\w+)', open(mount + '/.dealfs/metrics').read(), re.M))
for name in sorted((shown | set(table)) - names):
    print(f'metrics have {name}, which the page does not describe')
for name in sorted(names - shown - set(table)):
    print(f'the page describes {name}, which metrics do not have')
for name, path in table.items():
    path = path.replace('#', '$').replace('world.$', 'world[]')
    path = re.sub(r'^\$', 'TIER', path).replace('.$bytes', '.NUMBER').replace('.$', '.PLACE')
    if path.replace('errors.ETIMEDOUT', 'errors.ERRNO') not in status:
        print(f'{name} shows {path}, which is no field of status')
