"""A report's lines, written to PostgreSQL by one holder at a time; what was cut short goes on at its next line.

Python 3.8 or newer, its standard library, and psql. docs/applications.md explains it.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

PATIENCE = 5  # seconds, for what has no other limit


class Sidecar(http.client.HTTPConnection):
    """HTTP over the sidecar's Unix socket."""

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.environ["FENCEDLEASE_SOCKET"])


def ask(method, path, body=None):
    """The status and the JSON of an answer."""
    sidecar = Sidecar("lease", timeout=PATIENCE)
    try:
        sidecar.request(method, path, None if body is None else json.dumps(body))
        answer = sidecar.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        sidecar.close()


def since_boot():
    """Seconds on CLOCK_BOOTTIME, on which the sidecar's instants are too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def watch(fence, cancel):
    """Cancels when the lease is lost or given back, and when the sidecar cannot be heard."""
    sidecar = Sidecar("lease", timeout=PATIENCE)
    until = since_boot() + PATIENCE
    try:
        sidecar.request("GET", "/v1/events")
        stream = sidecar.sock  # http.client lets go of it where the end of the answer is that of the connection
        for line in sidecar.getresponse():
            event = json.loads(line)
            if "state" in event and (event["state"] != "ACTIVE" or event["fence"] != fence or "ending" in event):
                return cancel(f"{event['state']} {event.get('reason') or event.get('ending')}")
            heard = since_boot()
            if heard >= until:
                break
            if "killAtBoottimeMs" in event:
                until = event["killAtBoottimeMs"] / 1000
            elif "remainingMs" in event:
                until = heard + event["remainingMs"] / 1000
            stream.settimeout(max(until - heard, 0.001))
        cancel("the sidecar closed the stream of events, or was silent for too long")
    except socket.timeout:
        cancel("the sidecar was silent for too long")
    except Exception as error:  # whatever it is: nobody would hear of a loss any more
        cancel(f"the sidecar cannot be heard: {error!r}")


WRITE = """
BEGIN;
SELECT fencedlease.use_fence(:'resource', :'fence', :'holder');
INSERT INTO report (run, line, fence) VALUES (:'run', :'line', :'fence') ON CONFLICT DO NOTHING;
COMMIT;
"""


class Stop(Exception):
    """The end of the work before it is complete: an exit code, and why."""


def psql(sql, timeout, **variables):
    """What a statement answers. psql stands for your driver; with psycopg the code is `error.sqlstate`."""
    command = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose"]
    for name, value in variables.items():
        command += ["-v", f"{name}={value}"]
    command.append(os.environ["REPORT_DATABASE"])
    return subprocess.run(command, input=sql, timeout=timeout, capture_output=True, text=True)


def commit(lease, run, line):
    need_ms = int(os.environ["REPORT_NEED_MS"])
    asked = since_boot()
    status, verdict = ask("POST", "/v1/commit-check", {"fence": lease["fence"], "needMs": need_ms})
    if status != 200:
        raise Stop(11, f"too late: {verdict}")
    # Counted from the question, however late the answer is.
    remaining = asked + verdict["remainingMs"] / 1000 - since_boot()
    if remaining <= 0:
        raise Stop(11, "too late: the answer came when nothing remained")
    who = {"resource": lease["resource"], "fence": lease["fence"], "holder": lease["holding"]}
    try:
        written = psql(WRITE, remaining, run=run, line=line, **who)
    except subprocess.TimeoutExpired:
        raise Stop(13, "unknown: the database did not confirm in time") from None
    if "FL001" in written.stderr:
        message = written.stderr.splitlines()[0]
        rejection = {"fence": lease["fence"], "resourceKind": "postgresql", "message": message[:500]}
        try:
            ask("POST", "/v1/fence-rejected", rejection)
        except (OSError, ValueError, http.client.HTTPException) as error:
            print(f"the refusal could not be reported: {error!r}", file=sys.stderr)
        raise Stop(12, f"refused: {message}")
    if written.returncode != 0:
        raise Stop(1, written.stderr)


def next_line(run):
    try:
        found = psql("SELECT coalesce(max(line), 0) + 1 FROM report WHERE run = :'run';", PATIENCE, run=run)
    except subprocess.TimeoutExpired:
        raise Stop(1, f"the database did not answer within {PATIENCE} s") from None
    if found.returncode != 0:
        raise Stop(1, found.stderr)
    return int(found.stdout)


def main():
    cancelled = threading.Event()
    reasons = []

    def cancel(why):
        reasons.append(why)
        cancelled.set()

    # SIGTERM comes at a loss too, and before a planned end.
    signal.signal(signal.SIGTERM, lambda *_: cancel("SIGTERM"))
    _, lease = ask("GET", "/v1/lease")
    if lease["state"] != "ACTIVE":
        raise Stop(10, f"cancelled: {lease}")
    threading.Thread(target=watch, args=(lease["fence"], cancel), daemon=True).start()

    run = os.environ["REPORT_RUN"]
    first = os.environ.get("REPORT_FROM")
    first = next_line(run) if first is None else int(first)
    for line in range(first, int(os.environ["REPORT_LINES"]) + 1):
        cancelled.wait(int(os.environ["REPORT_LINE_MS"]) / 1000)  # the work
        if cancelled.is_set():
            raise Stop(10, f"cancelled: {reasons[0]}")
        commit(lease, run, line)
    return Stop(0, "complete")


if __name__ == "__main__":
    try:
        stop = main()
    except Stop as early:
        stop = early
    code, why = stop.args
    print(why, flush=True)
    sys.exit(code)
