"""Stands for a program: asks the server to run it, and is it for whoever started this.

Its first argument is the file whose name is the program's, the others are the program's.

Signals go on to the program, and its end is this one's. Without a server, and for options of Python that one cannot
fork with, the program itself is started in place of this.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys

PLACE = "NAS_EXT_WARM"
"""The variable with the server's socket."""
PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


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
    _, started, *arguments = sys.argv
    name = os.path.basename(started)
    program = os.path.join(os.path.dirname(sys.executable), name)
    command, proposals = [program, *arguments], ask(program, arguments)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if proposals is None:
            raise FileNotFoundError
        server.connect(os.environ[PLACE])
    except (OSError, KeyError):
        os.execv(program, command)
    umask = os.umask(0)
    os.umask(umask)
    request = {"arguments": proposals, "folder": os.getcwd(), "environment": dict(os.environ), "umask": umask}
    python = os.path.join(os.path.dirname(started), "python")
    text = json.dumps({**request, "group": os.getpgrp(), "python": python}).encode()
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)  # until the program is known
    socket.send_fds(server, [b"%16d" % len(text)], [0, 1, 2])
    server.sendall(text)
    answers = server.makefile()
    begun = answers.readline().strip()
    if begun == "cold":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        os.execv(program, command)
    if not begun:
        sys.exit(f"{name}: the server of warm programs has ended")
    process, shared = map(int, begun.split())

    def pass_on(number, _):
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(process, number)

    for one in PASSED_ON:
        signal.signal(one, pass_on)
    signal.signal(signal.SIGINT, signal.SIG_IGN if shared else pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    while not select.select([server], [], [], 0.1)[0]:
        pass  # a signal that comes just before the wait is handled after it
    code = int(answers.readline() or 1)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code)  # private: the exit is the program's


if __name__ == "__main__":
    main()
