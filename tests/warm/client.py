"""Stands for a program under the program's name: asks the server to run it, and is it for whoever started this.

Signals go on to the program, and its end is this one's. Without a server, and for options of Python that one cannot
fork with, the program itself is started in place of this.
"""

import json
import os
import signal
import socket
import sys

PLACE = "NAS_EXT_WARM"
"""The variable with the server's socket."""


def ask(program, arguments):
    """The command line for the server: ``-P`` or nothing, ``-m``, ``-c`` or nothing, and what follows.

    None where a fork will not do.
    """
    if not os.path.basename(program).startswith("python"):
        return ["", "", program, *arguments]
    safe = "-P" if arguments[:1] == ["-P"] else ""
    rest = arguments[bool(safe) :]
    if rest[:1] in (["-m"], ["-c"]) and len(rest) > 1:
        return [safe, *rest]
    return [safe, "", *rest] if rest and not rest[0].startswith("-") else None


def main():
    name = os.path.basename(sys.argv[0])
    program = os.path.join(os.path.dirname(sys.executable), name)
    command, asked = [program, *sys.argv[1:]], ask(program, sys.argv[1:])
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if asked is None:
            raise FileNotFoundError
        server.connect(os.environ[PLACE])
    except (OSError, KeyError):
        os.execv(program, command)
    umask = os.umask(0)
    os.umask(umask)
    request = {"arguments": asked, "folder": os.getcwd(), "environment": dict(os.environ), "umask": umask}
    python = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "python")
    text = json.dumps({**request, "group": os.getpgrp(), "python": python}).encode()
    socket.send_fds(server, [b"%16d" % len(text)], [0, 1, 2])
    server.sendall(text)
    answers = server.makefile()
    begun = answers.readline().strip()
    if begun == "cold":
        os.execv(program, command)
    if not begun:
        sys.exit(f"{name}: the server of warm programs has ended")
    for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(one, lambda number, _: os.kill(int(begun), number))
    shared = os.getpgid(int(begun)) == os.getpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN if shared else lambda number, _: os.kill(int(begun), number))
    code = int(answers.readline() or 1)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)  # private: the end is the program's, not this stand-in's


if __name__ == "__main__":
    main()
