# SPDX-License-Identifier: Apache-2.0
"""HAProxy with one address for several workers, set up as docs/OPERATIONS.md says; it ends with the chain."""
import socket
import subprocess

import system

CONFIG = """global
    maxconn 1000
defaults
    mode tcp
    timeout connect 1s
    timeout client 30s
    timeout server 30s
    retries 3
    option redispatch
listen workers
    bind 127.0.0.1:{port}
    balance leastconn
{servers}"""


def start(chain, workers):
    """Its endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = chain.folder / f"haproxy-{port}.cfg"
    servers = "".join(f"    server w{i} {worker.ready['listen']} check inter 100ms\n" for i, worker in enumerate(workers))
    config.write_text(CONFIG.format(port=port, servers=servers))
    log = chain.folder / f"haproxy-{port}.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(["haproxy", "-db", "-f", str(config)], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   preexec_fn=system.die_with_parent)
    server = system.Server("haproxy", process, log, {"listen": f"127.0.0.1:{port}"})
    chain.servers.append(server)
    return server.endpoint
