"""The job runner whose charges carry no key: the API cannot tell a retry from a second sale."""

import sys

from runner import run

sys.exit(run(lambda job: None))
