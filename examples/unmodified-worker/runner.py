"""A small payment job runner: it charges every job that is not done, and keeps its jobs in SQLite.

    python runner.py JOBS.DB          makes the database, with one job to charge
    python no_key.py JOBS.DB URL      charges what is not done (so do attempt_key.py, stable_key.py)

It knows nothing of rcr. The three versions differ only in the key that a charge carries.
"""

import json
import os
import sqlite3
import sys
import urllib.request

TIMEOUT = 3  # seconds; a charge that takes longer counts as failed


def run(key_of):
    """Charge every job that is not done; return how many could not be charged."""
    jobs = connect(sys.argv[1])
    url = sys.argv[2] if len(sys.argv) > 2 else os.environ["PAYMENTS_URL"]
    failed = 0
    for job, customer, cents in jobs.execute(
        "SELECT id, customer, cents FROM job WHERE state != 'done'"
    ).fetchall():
        try:
            charge(url, customer, cents, key_of(job))
        except OSError as error:  # refused, cut off, timed out, or answered with 4xx or 5xx
            print(f"job {job}: {error}", file=sys.stderr)
            set_state(jobs, job, "failed")
            failed += 1
        else:
            set_state(jobs, job, "done")
    return min(failed, 1)


def charge(url, customer, cents, key):
    """Ask the payment API for one charge."""
    body = json.dumps({"customer": customer, "cents": cents}).encode()
    request = urllib.request.Request(f"{url}/charges", body, method="POST")
    request.add_header("Content-Type", "application/json")
    if key is not None:
        request.add_header("Idempotency-Key", key)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        answer.read()


def set_state(jobs, job, state):
    with jobs:
        jobs.execute("UPDATE job SET state = ? WHERE id = ?", (state, job))


def connect(path):
    jobs = sqlite3.connect(path)
    with jobs:
        jobs.execute(
            "CREATE TABLE IF NOT EXISTS job "
            "(id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, state TEXT)"
        )
    return jobs


def main():
    jobs = connect(sys.argv[1])
    with jobs:
        jobs.execute("INSERT INTO job (customer, cents, state) VALUES ('Ada', 1250, 'new')")


if __name__ == "__main__":
    main()
