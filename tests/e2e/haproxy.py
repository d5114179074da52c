"""A real HAProxy of the test."""

import socket

from harness import free_port, need_program

CONFIG = """
global
  maxconn 256
defaults
  mode {mode}
  timeout connect 10s
  timeout client 60s
  timeout server 60s
frontend f
  bind 127.0.0.1:{port} {bind}
  {frontend}
  default_backend b
backend b
  {backend}
"""


class Haproxy:
    """Listens at a free port; `backend` are lines of its backend section."""

    def __init__(self, case, backend, mode="tcp", frontend="", bind=""):
        program = need_program("haproxy")
        self.port = free_port()
        config = case.directory / f"haproxy-{self.port}.cfg"
        config.write_text(CONFIG.format(mode=mode, port=self.port, backend=backend, bind=bind,
                                        frontend=frontend))
        case.start([program, "-db", "-f", config], self.port)


def said_of(stats, backend, column):
    """{server: what HAProxy says of it} by its stats socket; nothing while HAProxy starts."""
    with socket.socket(socket.AF_UNIX) as talk:
        if talk.connect_ex(str(stats)) != 0:
            return {}
        talk.sendall(b"show stat\n")
        text = b"".join(iter(lambda: talk.recv(65536), b"")).decode()
    lines = [line.split(",") for line in text.splitlines() if line]
    names = lines[0]
    return {row[1]: row[names.index(column)] for row in lines[1:] if row[0] == backend and row[1] != "BACKEND"}
