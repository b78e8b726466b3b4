"""What each command of the command line does: call the library, and print what comes back.

Each takes what was typed, and returns the process's exit code. Results go to stdout, everything
else to stderr. What a command needs is imported when it runs.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rcr_probes.errors import EvidenceError, NotEvidence, RcrError
from rcr_probes.reading import reading
from rcr_probes.stderr import say, told

if TYPE_CHECKING:
    from rcr_probes.model import Plan

UNKNOWN_CELLS = 3


def run(args: Namespace) -> int:
    from rcr_probes import plan as plans
    from rcr_probes.evidence.form import MANIFEST
    from rcr_probes.report import terminal
    from rcr_probes.report.texts import text
    from rcr_probes.run import run

    plan = _chosen(args)
    folder = args.into or Path("runs", f"{plan.name}.only" if args.only else plan.name)
    if args.only:
        plan = plans.only(plan, args.only)
    complete = (folder / MANIFEST).exists() and not args.again
    with terminal.progress(folder.name) as progress:
        evidence = run(
            plan,
            folder,
            start=args.start,
            workers=args.workers,
            again=args.again,
            keep=args.keep,
            deadline=args.deadline,
            on=args.on,
            progress=progress,
        )
    done = "run.complete" if complete else "run.measured"
    say(text(done, args.lang, folder=folder, cells=len(plan.cells)))
    terminal.draw(terminal.article_or_verdicts(evidence, args.lang))
    sys.stdout.flush()
    for line in terminal.advice(evidence, args.lang):
        say(line)
    judged = (capture.judgement.verdict for capture in evidence.captures())
    return UNKNOWN_CELLS if any(v and v.verdict == "unknown" for v in judged) else 0


def _chosen(args: Namespace) -> Plan:
    """The plan; with --installed, what of it can run here, and what is left out is said."""
    from rcr_probes import plan as plans
    from rcr_probes.report.texts import text

    if not args.installed:
        return plans.read(args.plan)
    plan, missing = plans.read_installed(args.plan)
    for error in missing:
        say(f"{text('run.left_out', args.lang, cause=error.cause)}\n  {error.remedy}")
    return plan


def probe(args: Namespace) -> int:
    from rcr_probes.probe import Asked, Command, given, probe
    from rcr_probes.receiver import Settings
    from rcr_probes.report import probed, terminal

    asked = Asked(
        worker=given(args.worker),
        recover=None if args.recover is None else Command.parsed(args.recover),
        setup=None if args.setup is None else Command.parsed(args.setup),
        request=args.request,
        settings=Settings(answer=args.answer, status=args.status, key_header=args.key_header),
        timeout=args.timeout,
        syscalls=args.syscalls,
    )
    with probed.progress() as progress:
        done = probe(asked, args.into, progress)
    terminal.draw([probed.drawn(done.evidence, args.lang)])
    print("\n".join(probed.sentences(done.evidence, args.lang)))
    sys.stdout.flush()
    failed = (done.failed.cell, done.failed.printed) if done.failed else None
    for line in probed.advice(done.evidence, done.left_out, failed, args.lang):
        say(line)
    return probed.exit_code(done.evidence)


@reading("folder")
def show(args: Namespace) -> int:
    from rcr_probes.evidence import exported, store
    from rcr_probes.evidence.exported import Exported
    from rcr_probes.publish import mistaken

    mistaken.refuse(args.folder)
    if args.claims:
        return _show_claims(args)
    from rcr_probes.report import probed, terminal

    evidence: exported.Rowed
    if exported.is_exported(args.folder):
        evidence = exported.opened(args.folder)
    else:
        evidence = store.read_whole(args.folder)
    if args.json:
        terminal.print_json(evidence.rows())
    elif args.csv:
        terminal.print_csv(evidence)
    elif args.markdown:
        terminal.print_markdown(terminal.every(evidence, args.lang))
    elif not isinstance(evidence, Exported) and probed.is_probe(evidence):
        terminal.draw([probed.drawn(evidence, args.lang)])
        print("\n".join(probed.sentences(evidence, args.lang)))
    else:
        terminal.draw(terminal.every(evidence, args.lang))
    if isinstance(evidence, Exported) and not (args.json or args.csv):
        _say_not_drawn(terminal.not_drawn(evidence, args.lang), args.lang)
    return 0


def _say_not_drawn(titles: list[str], lang: str) -> None:
    from rcr_probes.report.texts import text

    if titles:
        sys.stdout.flush()
        say("\n  ".join([text("show.not_drawn", lang), *titles]))


@reading("folder")
def export(args: Namespace) -> int:
    from rcr_probes.evidence import exported, store
    from rcr_probes.publish import mistaken

    mistaken.refuse(args.folder)
    count = exported.export(store.read_whole(args.folder), args.to)
    print(f"{args.to}: rows: {count}")
    return 0


def _show_claims(args: Namespace) -> int:
    import json

    from rcr_probes.evidence.claimed import held
    from rcr_probes.report import claims

    if args.csv or args.markdown:
        raise RcrError("Claims are shown as text or with --json.", "Leave out the other form.")
    report = held(args.folder)
    if args.json:
        print(json.dumps(claims.objects(report), indent=1, ensure_ascii=False))
    else:
        print("\n".join(claims.lines(report, args.lang)))
    return 0


@reading("folder")
def explain(args: Namespace) -> int:
    from rcr_probes.evidence import store
    from rcr_probes.publish import mistaken
    from rcr_probes.report.explain import explain, matching

    mistaken.refuse(args.folder)
    evidence = store.read_whole(args.folder)
    cell = matching(args.cell, (c.id for c in evidence.plan.cells), args.folder)
    print("\n".join(explain(evidence.capture(cell), args.lang)))
    return 0


def check(args: Namespace) -> int:
    from rcr_probes.evidence import archive
    from rcr_probes.publish.layout import is_package

    absent = args.trust is not None and not args.folder.is_dir()  # a package is meant
    if absent or is_package(args.folder) or args.folder.is_file():
        with archive.opened(args.folder) as folder:
            return _check_package(folder, args)
    if args.trust is not None:
        raise RcrError(
            f"{args.folder} is no package, and nothing in it is signed.",
            "Name a package that was made with: rcr publish --sign KEY.pem",
        )
    return _check_evidence(args)


def _check_evidence(args: Namespace) -> int:
    from rcr_probes.evidence.checked import check_all
    from rcr_probes.report.texts import text

    speak = partial(text, lang=args.lang)
    reports = check_all(args.folder)
    for report in reports:
        if report.sound:
            said = speak("checked.folder", captures=report.captures)
            print(told(speak("checked.finding", place=report.folder, said=said)))
        for finding in report.findings:
            said = finding.said(speak)
            print(told(speak("checked.finding", place=report.folder, said=said)))
    several = all(report.folder != args.folder for report in reports)
    # claims stand beside evidence folders
    held = _check_claims(args.folder, args.lang) if several else True
    return 0 if held and all(report.sound for report in reports) else 1


def _check_package(folder: Path, args: Namespace) -> int:
    """Check a package; with --trust, also that its key stands for it."""
    from rcr_probes.publish import checker, layout, signature
    from rcr_probes.publish.said import lines
    from rcr_probes.publish.verify import verify
    from rcr_probes.report.texts import text

    if not layout.is_package(folder):
        raise NotEvidence(
            f"{args.folder} is no package that rcr publish made.",
            f"Take it in, and check what comes of it: rcr import {args.folder}",
        )
    report, speak = verify(folder), partial(text, lang=args.lang)
    trust = args.trust if report.sound else None
    keyid = None if trust is None else signature.verified(folder, trust)
    for line in lines(report, speak, keyid):
        print(line)
    if report.sound and not checker.is_ours(folder):
        print(speak("checked.checker"))
    return 0 if report.sound else 1


def _check_claims(folder: Path, lang: str) -> bool:
    """Print what becomes of the claims of a folder of evidence folders; false where one fails."""
    from rcr_probes.evidence.claimed import held
    from rcr_probes.evidence.claims import FILE
    from rcr_probes.report import claims
    from rcr_probes.report.texts import text

    place = folder / FILE
    if not os.path.lexists(place):
        return True
    try:
        report = held(folder)
    except EvidenceError as error:  # what cannot be trusted is a finding, like any other
        print(told(f"{folder}: {error.cause} {error.remedy}"))
        return False
    lines = [*claims.problems(report, lang), *claims.notes(report, lang)]
    if report.sound:
        lines.insert(0, text("claim.all_hold", lang, claims=len(report.claims)))
    for line in lines:
        print(text("checked.finding", lang, place=place, said=line))
    return report.sound


@reading("ours", "theirs")
def compare(args: Namespace) -> int:
    from rcr_probes.evidence import store
    from rcr_probes.evidence.compare import compare
    from rcr_probes.publish import mistaken
    from rcr_probes.report import compared

    for folder in (args.ours, args.theirs):
        mistaken.refuse(folder)
    comparison = compare(store.read(args.ours), store.read(args.theirs))
    print("\n".join(compared.lines(comparison, args.lang)))
    return 0 if comparison.same else 1


def import_(args: Namespace) -> int:
    from rcr_probes.evidence import archive
    from rcr_probes.evidence.published import import_package
    from rcr_probes.publish.build import refuse_inside
    from rcr_probes.publish.layout import is_package
    from rcr_probes.publish.taken import take
    from rcr_probes.report import terminal

    named = args.package.resolve()
    into = args.into or Path("runs", named.stem if named.is_file() else named.name)
    refuse_inside(into)
    with archive.opened(args.package) as folder:
        if not is_package(folder):
            terminal.print_imported(import_package(folder, into))
            return 0
        for name, captures in take(folder, into).evidence.items():
            print(f"{into / name}: captures: {captures}")
    return 0


def publish(args: Namespace) -> int:
    from rcr_probes.publish import mistaken
    from rcr_probes.publish.build import publish
    from rcr_probes.report import terminal

    mistaken.refuse(args.folder)
    origin = {"date": args.date, "commit": args.commit}
    with terminal.progress(args.into.name) as progress:
        made = publish(args.folder, args.into, **origin, key=args.sign, progress=progress)
    print(f"{made.place}: files: {len(made.report.digests)}, manifest: {made.manifest_sha256}")
    if made.left_out:
        print("\n  ".join(["not there, and left out:", *made.left_out]))
    return 0


def timeline(args: Namespace) -> int:
    import json

    from rcr_probes.publish import mistaken
    from rcr_probes.report import terminal, timeline

    mistaken.refuse_published(args.place)
    given = timeline.opened(args.place, args.cell)
    timeline.refuse_outside(given, args.at)
    if args.json:
        print(json.dumps(timeline.answer(given, args.at)))
        return 0
    print("\n".join(timeline.sentences(given, args.at, args.lang)), end="\n\n")
    terminal.draw(timeline.drawn(given, args.at, args.lang))
    return 0


def runtimes(args: Namespace) -> int:
    from rcr_probes.report import adapters, terminal

    terminal.draw([adapters.drawn(args.lang)])
    sys.stdout.flush()
    for line in adapters.remedies(args.lang):
        say(line)
    return 0


def conformance(args: Namespace) -> int:
    from rcr_probes.conformance import conformance
    from rcr_probes.report import terminal
    from rcr_probes.report.texts import text

    with terminal.progress("conformance") as progress:
        results = conformance(args.runtime, deadline=args.deadline, progress=progress)
    for result in results:
        for line in result.lines(partial(text, lang=args.lang)):
            print(told(line))
    return 1 if any(result.wrong for result in results) else 0


def decide(args: Namespace) -> int:
    from rcr_probes.eligibility import decide
    from rcr_probes.model import Facts
    from rcr_probes.report.explain import decided

    facts = Facts(args.identity, args.effect, args.capability)
    decision = decide(facts)
    if args.json:
        import json
        from dataclasses import asdict

        print(json.dumps(asdict(facts) | asdict(decision)))
    else:
        print("\n".join(decided(facts, decision, args.lang)))
    return 0


def guide(args: Namespace) -> int:
    from rcr_probes.publish import mistaken
    from rcr_probes.report.guide.build import build
    from rcr_probes.report.texts import LANGS

    if args.evidence is not None:
        mistaken.refuse(args.evidence)
    for path in build(args.into, [args.lang] if args.lang else LANGS, args.evidence):
        print(path)
    return 0


def notebooks(args: Namespace) -> int:
    from rcr_probes.report.execute import run_notebooks

    for path in run_notebooks(args.into, dict(args.p), args.names or None):
        print(path)
    return 0
