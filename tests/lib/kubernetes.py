"""kubernetes.py FOLDER FILE…: checks objects for Kubernetes, without its API server: the fields that they have, by
kind; selectors, roles, service accounts and volumes that refer to each other; and what dealfs needs of a pod. FOLDER
has the files that are installed beside them."""
import os
import sys

import yaml

MOUNTS = [{'name': str, 'mountPath': str, 'readOnly': bool, 'mountPropagation': str}]
POD = {'serviceAccountName': str, 'shareProcessNamespace': bool,
       'initContainers': [{'name': str, 'image': str, 'command': [str], 'volumeMounts': MOUNTS}],
       'restartPolicy': str, 'terminationGracePeriodSeconds': int,
       'securityContext': {'runAsNonRoot': bool, 'runAsUser': int},
       'containers': [{'name': str, 'image': str, 'args': [str], 'command': [str],
                       'securityContext': {'privileged': bool, 'runAsNonRoot': bool, 'runAsUser': int,
                                           'runAsGroup': int, 'allowPrivilegeEscalation': bool,
                                           'capabilities': {'drop': [str]},
                                           'seccompProfile': {'type': str}},
                       'resources': {'requests': {'memory': str}, 'limits': {'memory': str}},
                       'readinessProbe': {'exec': {'command': [str]}, 'periodSeconds': int, 'timeoutSeconds': int},
                       'volumeMounts': MOUNTS}],
       'volumes': [{'name': str, 'hostPath': {'path': str, 'type': str}, 'emptyDir': {'medium': str}}]}
TEMPLATE = {'metadata': {'labels': {'app': str}, 'annotations': {'kubectl.kubernetes.io/default-container': str}},
            'spec': POD}
HEAD = {'apiVersion': str, 'kind': str, 'metadata': {'name': str, 'namespace': str}}
KINDS = {
    'v1 Namespace': {},
    'v1 ServiceAccount': {},
    'rbac.authorization.k8s.io/v1 Role': {'rules': [{'apiGroups': [str], 'resources': [str], 'verbs': [str]}]},
    'rbac.authorization.k8s.io/v1 RoleBinding': {
        'roleRef': {'apiGroup': str, 'kind': str, 'name': str},
        'subjects': [{'kind': str, 'name': str, 'namespace': str}]},
    'apps/v1 DaemonSet': {'spec': {'selector': {'matchLabels': {'app': str}}, 'template': TEMPLATE}},
    'batch/v1 Job': {'spec': {'backoffLimit': int, 'template': TEMPLATE}},
}
wrong = []


def check(where, value, schema):
    if isinstance(schema, dict):
        for key, inner in (value if isinstance(value, dict) else {where: value}).items():
            if not isinstance(value, dict) or key not in schema:
                wrong.append(f'{where}: unknown field {key}')
            else:
                check(f'{where}.{key}', inner, schema[key])
    elif isinstance(schema, list):
        for i, inner in enumerate(value if isinstance(value, list) else [None]):
            check(f'{where}[{i}]', inner, schema[0])
    elif type(value) is not schema:
        wrong.append(f'{where}: {value!r} is not of type {schema.__name__}')


def need(what, found):
    if not found:
        wrong.append(what)


objects = []
for path in sys.argv[2:]:
    with open(path, encoding='utf-8') as f:
        objects += [o for o in yaml.safe_load_all(f) if o]
by_kind = {}
for o in objects:
    name = f"{o.get('apiVersion')} {o.get('kind')}"
    need(f'{name}: unknown kind', name in KINDS)
    check(f"{o['kind']}/{o['metadata']['name']}", o, HEAD | KINDS.get(name, {}))
    by_kind.setdefault(o['kind'], {})[o['metadata']['name']] = o

namespaces = by_kind['Namespace']
for o in objects:
    of = o['metadata']
    need(f"{of['name']}: no such namespace", o['kind'] == 'Namespace' or of['namespace'] in namespaces)
for name, o in by_kind['RoleBinding'].items():
    need(f'{name}: no such role', o['roleRef']['name'] in by_kind['Role'])
    need(f'{name}: no such account', all(s['name'] in by_kind['ServiceAccount'] for s in o['subjects']))
rights = {(r, v) for o in by_kind['Role'].values() for rule in o['rules']
          for r in rule['resources'] for v in rule['verbs']}
need('the role is what `join` needs', rights == {('pods', 'get'), ('pods', 'list'), ('pods/exec', 'create')})
for name, o in (by_kind['DaemonSet'] | by_kind['Job']).items():
    template, spec = o['spec']['template'], o['spec']['template']['spec']
    if o['kind'] == 'DaemonSet':
        selected = o['spec']['selector']['matchLabels']
        need(f'{name}: the selector is not its label', selected == template['metadata']['labels'])
    else:
        need(f'{name}: a Job needs a restartPolicy', spec.get('restartPolicy') in ('Never', 'OnFailure'))
    need(f'{name}: no such account', spec.get('serviceAccountName', 'dealfs-join') in by_kind['ServiceAccount'])
    volumes = {v['name'] for v in spec.get('volumes', [])}
    for c in spec.get('initContainers', []) + spec['containers']:
        for m in c.get('volumeMounts', []):
            need(f"{name}: no volume {m['name']}", m['name'] in volumes)
            need(f"{name}: {m['name']} is not readOnly", m.get('readOnly') or
                 m['name'] != 'source' and m.get('mountPropagation') != 'HostToContainer' and o['kind'] != 'Job')
            need(f'{name}: Bidirectional needs a privileged container', m.get('mountPropagation') != 'Bidirectional' or
                 c['securityContext']['privileged'])
        script = c.get('command', [''])[0].removeprefix('/bin/')
        need(f'{name}: {script} is not there', not script.startswith('/') or
             os.access(os.path.join(sys.argv[1], os.path.basename(script)), os.X_OK))
propagations = {m.get('mountPropagation') for o in (by_kind['DaemonSet'] | by_kind['Job']).values()
                for c in o['spec']['template']['spec']['containers'] for m in c.get('volumeMounts', [])}
need('one side gives its mounts, the other takes them', {'Bidirectional', 'HostToContainer'} <= propagations)
print(*wrong, sep='\n')
sys.exit(bool(wrong))
