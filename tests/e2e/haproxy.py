"""A real HAProxy of the test."""

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
