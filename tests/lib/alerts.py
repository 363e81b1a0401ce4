"""For the test of etc/monitoring.

    alerts.py serve FOLDER PORTFILE     like exporters: http://127.0.0.1:PORT/NAME is the file NAME of FOLDER
    alerts.py query PORT EXPRESSION     how many values Prometheus at PORT has for it
    alerts.py lacking PORT FILE         the expressions of FILE, one per line, for which it has none
    alerts.py firing PORT               the names of the alerts that have fired, sorted, one per line
    alerts.py expressions FILE…         those of rules (YAML; the left side) and dashboards (JSON), one per line
"""
import http.server
import json
import os
import re
import sys
import urllib.parse
import urllib.request


class Exporter(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            with open(os.path.join(sys.argv[2], os.path.basename(self.path)), 'rb') as f:
                text = f.read()
        except OSError as error:
            self.send_error(503, str(error))
            return
        self.send_response(200)
        self.send_header('Content-Type', 'text/plain; version=0.0.4')
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def serve(_, port_file):
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Exporter)
    with open(port_file + '.new', 'w', encoding='ascii') as f:
        f.write(str(server.server_port))
    os.rename(port_file + '.new', port_file)
    server.serve_forever()


def evaluate(port, expression):
    words = urllib.parse.urlencode({'query': expression})
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/api/v1/query?{words}') as reply:
        return json.load(reply)['data']['result']


def query(port, expression):
    print(len(evaluate(port, expression)))


def lacking(port, name):
    with open(name, encoding='utf-8') as f:
        for line in f:
            if not evaluate(port, line.strip()):
                print(line.strip())


def firing(port):
    fired = evaluate(port, 'count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[10m]))')
    print(*sorted(alert['metric']['alertname'] for alert in fired), sep='\n')


def expressions(*files):
    import yaml
    for name in files:
        with open(name, encoding='utf-8') as f:
            if name.endswith('.json'):
                texts = [t['expr'].replace('$instance', '.*') for p in json.load(f)['panels'] for t in p['targets']]
            else:
                texts = [re.split(' (?:==|>) ', rule['expr'])[0]
                         for group in yaml.safe_load(f)['groups'] for rule in group['rules']]
        print(*texts, sep='\n')


globals()[sys.argv[1]](*sys.argv[2:])
