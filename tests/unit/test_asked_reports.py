"""Whoever asks Airflow for reports of other days starts one process at a time, and few of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from strandline_airflow.asked_reports import KEPT_S, MOST_KEPT, AskedReports, BusyError


class Made:
    """Makes pages, and counts how many, and how many at once."""

    def __init__(self) -> None:
        self.pages = self.at_once = self.most_at_once = 0
        self.may_end = Event()
        self.may_end.set()

    def __call__(self) -> str:
        self.pages, self.at_once = self.pages + 1, self.at_once + 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.may_end.wait(10)
        self.at_once -= 1
        return f"page {self.pages}"


def test_the_same_report_is_made_once_until_the_pipeline_has_run_or_some_minutes_are_over():
    now = [0.0]
    make, reports = Made(), AskedReports(clock=lambda: now[0])
    assert [reports.page("a", make) for _ in range(5)] == ["page 1"] * 5
    assert reports.page(("a", "after a run"), make) == "page 2"
    now[0] = KEPT_S + 1
    assert reports.page("a", make) == "page 3"


def test_few_pages_are_kept():
    make, reports = Made(), AskedReports()
    for number in range(MOST_KEPT + 1):
        reports.page(number, make)
    assert reports.page(MOST_KEPT, make) == f"page {MOST_KEPT + 1}"
    assert reports.page(0, make) == f"page {MOST_KEPT + 2}"


def test_of_many_that_ask_at_once_one_is_served_at_a_time_and_the_others_are_told_to_come_again():
    make, reports = Made(), AskedReports(longest_wait_s=5)
    make.may_end.clear()

    def ask(number: int) -> str:
        try:
            return reports.page(number % 2, make)
        except BusyError:
            make.may_end.set()  # some have been turned away: the others go on
            return "busy"

    with ThreadPoolExecutor(20) as pool:
        answers = [*pool.map(ask, range(20))]
    assert make.most_at_once == 1
    assert make.pages <= 2
    assert 0 < answers.count("busy") < 20


def test_one_that_fails_lets_the_next_one_in():
    reports = AskedReports()

    def fails() -> str:
        raise TimeoutError

    for _ in range(9):
        with pytest.raises(TimeoutError):
            reports.page("a", fails)
    assert reports.page("a", Made()) == "page 1"
