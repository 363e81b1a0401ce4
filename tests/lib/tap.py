"""TAP for tests in Python. A test ends with sys.exit(done_testing()), one of unittest's classes with
sys.exit(run_units())."""
import os
import time
import traceback
import unittest

PATIENCE = max(1, float(os.environ.get('TEST_DEADLINE', time.time() + 300)) - time.time())  # seconds
STARTED = time.monotonic()
ran = failed = 0


def ok(condition, what):
    global ran, failed
    ran += 1
    failed += not condition
    print(f"{'' if condition else 'not '}ok {ran} - {what}", flush=True)
    return condition


def diag(text):
    for line in str(text).splitlines():
        print('#', line, flush=True)


def equal(got, expected, what):
    if not ok(got == expected, what):
        diag(f'     got: {str(got)[:400]!r}\nexpected: {str(expected)[:400]!r}')


def wait_for(condition, seconds=None, pause=0.001):
    """What the condition says once it says something, or None when it never does before the deadline of the test."""
    end = STARTED + PATIENCE if seconds is None else time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > end:
            return None
        time.sleep(pause)
    return result


def done_testing():
    print(f'1..{ran}', flush=True)
    return 1 if failed else 0


class Units(unittest.TestResult):
    """A line for each method: its class and name in words."""

    @staticmethod
    def words(test):
        method = test.id().split('.')
        return f"{method[-2]}: {method[-1][len('test_'):].replace('_', ' ')}"

    def addSuccess(self, test):
        ok(True, self.words(test))

    def addFailure(self, test, err):
        ok(False, self.words(test))
        diag(''.join(traceback.format_exception(*err)))

    addError = addFailure

    def addSkip(self, test, reason):
        self.addFailure(test, (AssertionError, AssertionError(f'skipped: {reason}'), None))


def run_units(module='__main__'):
    unittest.defaultTestLoader.loadTestsFromName(module).run(Units())
    return done_testing()
