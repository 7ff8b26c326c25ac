#!/usr/bin/env python3
"""Reads Bazel's build events and judges the tests they name.

usage: verdicts.py solutions|starters EVENTS.json

With `solutions` every test must have passed (or been skipped as incompatible).
With `starters` every *_speedup must have failed by a failed expectation, not by
a crash or a time-out, and every other test must have passed.

Prints one line per test that is not as it should be, then "PASSED FAILED" as
two numbers. Exit status 0 when it could judge.
"""

import json
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree as ElementTree


def read_events(path):
    """Returns {label: status} and {label: [paths of test.xml]}."""
    status, reports = {}, {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            summary = event["id"].get("testSummary")
            result = event["id"].get("testResult")
            if summary and "testSummary" in event:
                status[summary["label"]] = event["testSummary"]["overallStatus"]
            if result and "testResult" in event:
                for output in event["testResult"].get("testActionOutput", []):
                    if output["name"] == "test.xml":
                        reports.setdefault(result["label"], []).append(output["uri"])
    return status, reports


def failed_by_expectation(uris):
    """True when GoogleTest itself reported failed cases; a crash leaves no such report."""
    for uri in uris:
        path = urllib.request.url2pathname(urllib.parse.urlparse(uri).path)
        root = ElementTree.parse(path).getroot()
        if int(root.get("failures", "0")) > 0 and int(root.get("errors", "0")) == 0:
            return True
    return False


def judge_starter(label, status, reports):
    """What is wrong with one graded test of the starters; "" when nothing is."""
    if not label.endswith("_speedup"):
        return "" if status == "PASSED" else f"{status}, should have passed"
    if status != "FAILED":
        return f"{status}, but a starter must miss the required speedup"
    if not failed_by_expectation(reports.get(label, [])):
        return "did not run to its end"
    return ""


def judge(mode, status, reports):
    """Prints what is wrong and returns (passed, failed)."""
    failed = 0
    for label, verdict in sorted(status.items()):
        if mode == "starters":
            wrong = judge_starter(label, verdict, reports)
        else:
            wrong = "" if verdict == "PASSED" else verdict
        if wrong:
            failed += 1
            print(f"{label}: {wrong}")
    kinds = {label.rpartition("_")[2] for label in status}
    if mode == "starters" and not {"parity", "speedup"} <= kinds:
        print("//grader:all: holds no parity or no speedup test")
        failed += 1
    return len(status) - min(failed, len(status)), failed


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("solutions", "starters"):
        print(__doc__, file=sys.stderr)
        return 2
    print(*judge(sys.argv[1], *read_events(sys.argv[2])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
