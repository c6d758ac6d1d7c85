"""Whatever stops a run or the command: a last step in the ledger, and one line for people."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from no_session import spark_of
from pyspark.errors import AnalysisException, ArithmeticException, PySparkException

from strandline.engine.replay.operator_io import OF_A_RECORD
from strandline.errors import (
    AuditFailedError,
    InputError,
    RetryableError,
    StrandlineError,
    UnexpectedError,
    problem_of,
    storage_error,
)
from strandline.pipeline.request.failures import failures_recorded

command = import_module("strandline.cli.main")
SPARK = spark_of()


def recorded(say_failed):
    return failures_recorded(SPARK, "meter", "abc-1", say_failed)


def test_a_record_that_ends_each_run_is_left_out_as_the_error_says():
    steps: list[str] = []
    said = f"ValueError: {OF_A_RECORD}window.session: gap_ms gives a record so long a gap\n at x"
    with pytest.raises(InputError) as ended, recorded(steps.append):
        raise PySparkException(said)
    assert ended.value.place == "meter: window.session"
    assert "leave them out by source.valid" in ended.value.way_out
    assert steps == ["window.session: gap_ms gives a record so long a gap"]


class JavaError(Exception):
    """What Python's gateway to the JVM raises, by its text."""

    def __str__(self) -> str:
        return (
            "An error occurred while calling o12.save.\n"
            ": org.apache.spark.SparkException: Job aborted.\n\tat a.b.C(D.scala:1)\n"
        )


class LostTask(Exception):
    """What the gateway raises of a task whose end the driver waited for."""

    def __str__(self) -> str:
        return (
            "An error occurred while calling o12.save.\n"
            ": org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
            "\tat a.b.C(D.scala:1)\n"
            "Caused by: org.apache.spark.SparkException: Exception thrown in awaitResult: \n"
            "Caused by: java.io.FileNotFoundException: no such file\n"
        )


OTHERS = [
    JavaError(), ValueError("a\nb"), LookupError("odd"), MemoryError(),
    AnalysisException("[AMBIGUOUS_REFERENCE] `a` is ambiguous"), KeyError("x"), RecursionError(),
]  # fmt: skip


def test_a_missing_file_of_a_table_needs_a_person_and_one_of_staging_is_of_no_table():
    lost = FileNotFoundError("Failed to open local file '/lake/meter/windows/a.parquet'")
    with pytest.raises(InputError, match=r"windows/a\.parquet.*--recreate"), recorded(list):
        raise lost
    staged = FileNotFoundError("/lake/meter/_staging/abc-1/windows: no such file")
    with pytest.raises(UnexpectedError), recorded(list):
        raise staged


@pytest.mark.parametrize("error", OTHERS, ids=lambda error: type(error).__name__)
def test_an_error_of_any_class_leaves_a_step_and_becomes_one_line(error):
    steps: list[str] = []
    with (
        pytest.raises(UnexpectedError) as told,
        failures_recorded(SPARK, "meter", "abc-1", steps.append),
    ):
        raise error
    assert (told.value.exit_code, told.value.__cause__) == (1, error)
    assert str(told.value).startswith(f"meter run abc-1: {type(error).__name__}")
    assert "running it again is safe" in str(told.value)
    assert "\n" not in str(told.value)
    (step,) = steps
    assert step in str(told.value)


@pytest.mark.parametrize("kind", [InputError, RetryableError])
def test_an_error_of_ours_is_raised_as_it_is_with_its_step(kind):
    steps: list[str] = []
    with pytest.raises(kind) as told, recorded(steps.append):
        raise kind("place", "problem", "way out")
    assert steps == [str(told.value)]


def test_what_an_expression_throws_is_wrong_input():
    steps: list[str] = []
    with (
        pytest.raises(InputError, match="try_…"),
        failures_recorded(SPARK, "meter", "abc-1", steps.append),
    ):
        raise ArithmeticException("[DIVIDE_BY_ZERO] by zero\nmore")
    assert len(steps) == 1


def test_where_executors_died_with_all_that_they_kept_it_is_to_be_run_again():
    steps: list[str] = []
    with (
        pytest.raises(RetryableError) as told,
        failures_recorded(SPARK, "meter", "abc-1", steps.append),
    ):
        raise PySparkException("[CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND] rdd_1_0 not found")
    assert told.value.exit_code == 4
    assert steps == ["all executors have died that kept some rows of it"]


def test_an_answer_that_was_not_transferred_whole_is_to_be_asked_for_again():
    """On Sail it was wrong input: no retry, and advice about an expression."""
    details = 'status = StatusCode.INTERNAL\n\tdetails = "Exception deserializing response!"'
    with (
        pytest.raises(RetryableError, match="an answer of sail could not be decoded"),
        failures_recorded(spark_of("sail"), "meter", "abc-1", [].append),
    ):
        raise PySparkException(f"<_MultiThreadedRendezvous of RPC\n\t{details}>")


@pytest.mark.parametrize(
    ("engine", "problem"),
    [("sail", "the process of sail has ended"), ("connect", "the server answers no")],
)
def test_an_engine_that_has_ended_is_no_error_of_an_expression(engine, problem):
    steps = []
    with (
        pytest.raises(RetryableError, match=problem),
        failures_recorded(spark_of(engine, has_ended=True), "meter", "abc-1", steps.append),
    ):
        raise ArithmeticException("the connection was refused")
    assert problem in steps[0]


def test_a_rejection_has_left_its_step_already():
    steps: list[str] = []
    with pytest.raises(AuditFailedError), failures_recorded(SPARK, "meter", "abc-1", steps.append):
        raise AuditFailedError("place", "problem")
    assert steps == []


def test_an_interruption_leaves_a_step_and_stays_one():
    steps: list[str] = []
    with pytest.raises(KeyboardInterrupt), failures_recorded(SPARK, "meter", "abc-1", steps.append):
        raise KeyboardInterrupt
    assert steps == ["interrupted"]


def test_where_even_the_step_cannot_be_written_the_error_itself_is_told():
    def full_disk(_: str) -> None:
        raise OSError(28, "No space left on device")

    with (
        pytest.raises(InputError, match="place"),
        failures_recorded(SPARK, "meter", "a", full_disk),
    ):
        raise InputError("place", "problem")


def test_a_long_message_is_cut_and_an_empty_one_is_its_kind():
    assert len(problem_of(ValueError("x" * 1000))) == 300
    assert problem_of(ValueError("")) == "ValueError"
    assert problem_of(LostTask()) == "LostTask: java.io.FileNotFoundException: no such file"
    assert problem_of(JavaError()) == "JavaError: org.apache.spark.SparkException: Job aborted."


@pytest.mark.parametrize(("name", "shown"), [("", "''"), (" ", "' '"), ("a\nb", "a\\nb")])
def test_a_place_without_a_name_or_of_two_lines_is_seen_in_the_message(name, shown):
    assert str(InputError(name, "no such run")) == f"{shown}: no such run"


# ------------------------------------------------------------------------------------- the command


def called(monkeypatch, capsys, error: BaseException, *arguments: str) -> tuple[int, str, str]:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("strandline.cli.groups.Places.spec", broken)
    with pytest.raises(SystemExit) as ended:
        command.main(["status", "meter", *arguments])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_the_command_ends_with_one_line_whatever_happens(monkeypatch, capsys):
    monkeypatch.delenv("STRANDLINE_TRACE", raising=False)
    code, out, err = called(monkeypatch, capsys, JavaError())
    assert (code, out) == (1, "")
    assert len(err.strip().splitlines()) == 1
    assert "strandline status meter: JavaError: org.apache.spark.SparkException" in err
    assert "running it again is safe" in err


def test_the_trace_is_there_for_whoever_asks_for_it(monkeypatch, capsys):
    monkeypatch.setenv("STRANDLINE_TRACE", "1")
    _, _, err = called(monkeypatch, capsys, ValueError("odd"))
    assert "Traceback" in err
    assert "broken" in err


@pytest.mark.parametrize("error", [KeyboardInterrupt(), EOFError()], ids=["Ctrl-C", "Ctrl-D"])
def test_an_interrupted_command_says_so_and_ends_at_once(monkeypatch, capsys, error):
    class EndedAtOnceError(BaseException):
        pass

    def ends(code: int) -> None:
        raise EndedAtOnceError(code)

    monkeypatch.setattr("os._exit", ends)
    with pytest.raises(EndedAtOnceError, match="130"):
        called(monkeypatch, capsys, error, "--json")
    out, err = capsys.readouterr()
    said = "error strandline status meter: interrupted; running it again is safe"
    assert " ".join(err.split()) == said
    assert json.loads(out)["error"]["problem"] == "interrupted"


def test_a_file_that_the_system_refuses_is_named(monkeypatch, capsys):
    refused = PermissionError(13, "Permission denied", "/opt/python")
    code, _, err = called(monkeypatch, capsys, refused)
    assert code == 2
    assert "strandline status meter: /opt/python cannot be used (Permission denied)" in err


def test_of_an_error_of_delta_rs_the_causes_are_shown():
    error = OSError(
        "Kernel error -> Generic LocalFileSystem error\n"
        "      \x1b[31m↳\x1b[0m Unable to open file /lake/landing/t/_delta_log/_last_checkpoint\n"
        "       \x1b[31m↳\x1b[0m Permission denied (os error 13)\n"
    )
    found = storage_error("meter", error, to_read=True)
    file = "/lake/landing/t/_delta_log/_last_checkpoint"
    said = f"cannot be read (Unable to open file {file}: Permission denied (os error 13))"
    assert found.problem == said


@pytest.mark.parametrize("asked", [["status"], ["status", "meter"], ["validate"]])
def test_a_folder_of_pipelines_that_may_not_be_read_is_not_taken_for_an_empty_one(
    monkeypatch, capsys, tmp_path, asked
):
    def refused(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(SystemExit) as ended:
        command.main([*asked, "--pipelines", str(tmp_path)])
    assert ended.value.code == 2
    assert "cannot be read (Permission denied)" in capsys.readouterr().err


def test_machines_are_told_in_json(monkeypatch, capsys):
    code, out, _ = called(monkeypatch, capsys, ValueError("odd"), "--json")
    said = json.loads(out)
    assert said["exit_code"] == code == 1
    assert said["error"]["problem"] == "ValueError: odd"


def test_where_no_document_can_be_written_the_error_is_a_line_all_the_same(monkeypatch, capsys):
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as full:
        monkeypatch.setattr("sys.stdout", full)
        code, _, err = called(monkeypatch, capsys, OSError(28, "No space left on device"), "--json")
        monkeypatch.undo()
        with suppress(OSError):
            full.close()
    assert code == 4
    assert len(err.strip().splitlines()) == 1
    assert "the disk is full" in err


def test_validate_tells_of_a_file_that_nobody_has_foreseen_and_goes_on(
    monkeypatch, capsys, tmp_path
):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("{}", encoding="utf-8")

    def odd(path):
        raise LookupError("odd") if path.name == "a.yaml" else InputError(path.name, "wrong")

    monkeypatch.setattr("strandline.spec.load_spec", odd)
    with pytest.raises(SystemExit) as ended:
        command.main(["validate", "--json", "--pipelines", str(tmp_path)])
    assert ended.value.code == 2
    problems = [one["problem"] for one in json.loads(capsys.readouterr().out)]
    assert "LookupError" in problems[0]
    assert problems[1] == "b.yaml: wrong"


def test_an_unexpected_error_is_one_of_ours():
    assert issubclass(UnexpectedError, StrandlineError)
