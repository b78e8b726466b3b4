"""Take one benchmark in this process, which imports nothing of the others; print it as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from benchmarks.frame import circumstances, figure, load


def main(name: str) -> None:
    """Measure its pairs one after another, and print its figures, notes and circumstances."""
    benchmark, found = load(name), circumstances()
    with benchmark.taking() as taking:
        taken = [taking.pair() for _ in range(taking.pairs)]
    figures = {
        ratio.name: asdict(figure([pairs[ratio.name] for pairs in taken]))
        for ratio in benchmark.RATIOS
    }
    print(json.dumps({"figures": figures, "notes": taking.notes, "circumstances": found}))


if __name__ == "__main__":
    main(sys.argv[1])
