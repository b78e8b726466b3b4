"""The job runner whose key belongs to the job: every try of a job is the same request."""

import sys

from runner import run

sys.exit(run(lambda job: f"job-{job}"))
