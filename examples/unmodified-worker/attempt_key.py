"""The job runner with a new key for each attempt: every try looks like a new sale."""

import sys
import uuid

from runner import run

sys.exit(run(lambda job: str(uuid.uuid4())))
