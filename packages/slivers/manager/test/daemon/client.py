"""One session of calls with Python's own XML-RPC client: `client.py SOCKET|URL TOKEN PATH < calls.json`.

Prints a JSON list: {"result": ...} or {"fault": code, "text": ...} or {"error": class} for each [method, args...].
With SLIVER_UID set, the process gives up root for that user first.
"""

import http.client
import json
import os
import socket
import sys
import xmlrpc.client


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(self._path)


class UnixTransport(xmlrpc.client.Transport):
    def __init__(self, path):
        super().__init__()
        self._path = path

    def make_connection(self, host):
        return UnixConnection(self._path)


def main():
    place, token, path = sys.argv[1:4]
    calls = json.load(sys.stdin)
    if "SLIVER_UID" in os.environ:
        os.setuid(int(os.environ["SLIVER_UID"]))
    if place.startswith("http://"):
        headers = [("Authorization", "Bearer " + token)] if token else []
        proxy = xmlrpc.client.ServerProxy(place + path, headers=headers)
    else:
        proxy = xmlrpc.client.ServerProxy("http://localhost" + path, transport=UnixTransport(place))
    answers = []
    for method, *args in calls:
        try:
            answers.append({"result": getattr(proxy, method)(*args)})
        except xmlrpc.client.Fault as fault:
            answers.append({"fault": fault.faultCode, "text": fault.faultString})
        except OSError as error:
            answers.append({"error": type(error).__name__})
    print(json.dumps(answers))


main()
