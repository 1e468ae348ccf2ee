"""What a worker answers, and in which words a job has failed."""

from __future__ import annotations

from jaxevo.run.pool import JobFailed, carry_out, failure_in_words


def raising(error: Exception):
    def function(*_):
        raise error

    return function


def test_a_value_is_answered():
    assert carry_out(lambda a, b: {"sum": a + b}, (1, 2)) == {"value": {"sum": 3}}


def test_an_exception_is_answered_in_one_short_line_with_its_traceback():
    answer = carry_out(raising(OSError(5, "broken\ndisk " + "x" * 1000)), ())
    assert answer["failure"].startswith("OSError: [Errno 5] broken disk x")
    assert len(answer["failure"]) == 300
    assert answer["details"].startswith("Traceback")


def test_a_job_may_tell_itself_what_went_wrong():
    answer = carry_out(raising(JobFailed("no memory", "the traceback")), ())
    assert answer == {"failure": "no memory", "details": "the traceback"}


def test_an_exception_has_the_same_words_wherever_it_is_raised():
    assert failure_in_words(["it died", "ValueError: x"], "Traceback") == "ValueError: x"
    assert failure_in_words(["it died", "it died"], None) == "it died, twice"
    assert failure_in_words(["it died", "it hung"], None) == "it died; tried again: it hung"
