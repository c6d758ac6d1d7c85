"""The DAGs as Airflow reads them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow
PROJECT = Path(__file__).resolve().parents[2]
DAG_IDS = {
    "land_flights",
    "strandline_daily_flights",
    "strandline_daily_flights_daily",
    "strandline_daily_flights_early",
    "strandline_daily_flights_hourly",
    "strandline_daily_strict",
    "strandline_maintain",
    "strandline_report",
    "strandline_reprocess",
}


def test_every_dag_file_is_read_without_an_error_and_quickly(bag):
    from airflow.dag_processing.dagbag import DagBag

    again = DagBag(PROJECT / "dags")  # the first time pays for Airflow's own imports
    assert again.import_errors == {}
    assert set(again.dags) == DAG_IDS
    slow = {
        one.file: one.duration for one in again.dagbag_stats if one.duration.total_seconds() > 1
    }
    assert not slow


def test_the_shipped_pipelines_have_their_dags(bag, monkeypatch):
    from airflow.dag_processing.dagbag import DagBag

    monkeypatch.setenv("STRANDLINE_PIPELINES", str(PROJECT / "pipelines"))
    shipped = DagBag(PROJECT / "dags")
    assert shipped.import_errors == {}
    files = (PROJECT / "pipelines").glob("*.yaml")
    pipelines = {file.stem for file in files if not file.name.endswith(".test.yaml")}
    assert pipelines >= {"flights", "flights_sliding", "flights_sessions"}
    assert {f"strandline_daily_{name}" for name in pipelines} <= set(shipped.dags)


def test_reading_the_dags_and_the_plugin_loads_little(home):
    """No Spark, no data libraries, no command; and no file of the package under its bare stem."""
    script = (
        "import sys\n"
        "from airflow.dag_processing.dagbag import DagBag\n"
        "from airflow import plugins_manager\n"
        f"bag = DagBag({str(PROJECT / 'dags')!r})\n"
        "assert bag.dags and not bag.import_errors, bag.import_errors\n"
        "plugins_manager.get_fastapi_plugins()\n"
        "assert not plugins_manager.get_import_errors()\n"
        "assert 'strandline' in {one['name'] for one in plugins_manager.get_plugin_info()}\n"
        "heavy = {'pyspark', 'pandas', 'deltalake', 'great_expectations', 'strandline.cli'}\n"
        "bare = {'ranges', 'catalogue', 'outcomes', 'operators'}\n"
        "sys.exit(', '.join((heavy | bare) & set(sys.modules)) or None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2_000:]


def test_a_module_of_the_package_may_be_what_imports_airflow_first(home):
    done = subprocess.run(
        [sys.executable, "-c", "import strandline_airflow.settings"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]


def test_a_daily_run_covers_the_interval_between_two_ticks_of_the_schedule(bag):
    from airflow.serialization.encoders import coerce_to_core_timetable

    timetable = coerce_to_core_timetable(bag.dags["strandline_daily_flights"].timetable)
    interval = timetable.infer_manual_data_interval(run_after=datetime(2013, 1, 15, 6, tzinfo=UTC))
    assert interval.start == datetime(2013, 1, 14, 6, tzinfo=UTC)
    assert interval.end == datetime(2013, 1, 15, 6, tzinfo=UTC)


def test_a_pipeline_without_a_schedule_runs_by_hand_only(bag):
    assert bag.dags["strandline_daily_strict"].timetable.can_be_scheduled is False


def test_a_form_can_be_sent_with_what_it_has_by_default(bag):
    """Airflow's form takes an empty text for a missing value, unless null may be one."""
    for dag in bag.dags.values():
        for name in dag.params:
            param = dag.params.get_param(name)
            may_be_null = "null" in param.schema["type"]
            assert param.value not in {None, ""} or may_be_null, (dag.dag_id, name)


@pytest.mark.parametrize("text", ["2013-02-10", "2013-02-10T06:30:00.000Z", "2013-02-10 06:30"])
def test_instants_are_picked_in_the_form_and_given_as_dates_or_times_elsewhere(text):
    from strandline.spec.values import parse_instant
    from strandline_airflow.params import daily_params, reprocess_params

    params = {**reprocess_params(["flights"]), **daily_params()}
    for name in ("start", "end", "as_of", "to"):
        param = params[name]
        assert param.schema["format"] == "date-time", "the form shows a date picker for it"
        assert param.resolve(text) == text
        assert parse_instant(text) == parse_instant("2013-02-10") + (text[11:] > "") * 23_400_000


@pytest.mark.parametrize("asset", ["landed", "s3://bucket/landed"])
def test_a_pipeline_may_run_whenever_its_landing_is_updated(asset, tmp_path, bag):
    from airflow.sdk import Asset

    from strandline.spec import load_spec
    from strandline_airflow.catalogue import schedule_of

    file = tmp_path / "p.yaml"
    shipped = Path(__file__).parents[2] / "pipelines" / "flights.yaml"
    by_asset = f"{{asset: {asset!r}}}"
    file.write_text(shipped.read_text("utf-8").replace('"0 6 * * *"', by_asset), "utf-8")
    on = {"uri": asset} if "://" in asset else {"name": asset}
    assert schedule_of(load_spec(file)) == Asset.ref(**on)


def test_a_dag_runs_once_at_a_time_catches_nothing_up_and_retries(bag):
    for dag in bag.dags.values():
        spark_at_once = {
            dag.max_active_runs
            if task.max_active_tis_per_dag is None
            else task.max_active_tis_per_dag
            for task in dag.tasks
            if hasattr(task, "application_args")
        }
        assert spark_at_once <= {1}, dag.dag_id
        assert dag.max_active_runs == 1 or dag.has_task("approval"), dag.dag_id
        assert not dag.catchup, dag.dag_id
        assert dag.doc_md, dag.dag_id
        assert {task.retries for task in dag.tasks} == {2}, dag.dag_id


def test_the_tasks_of_each_dag_follow_each_other(bag):
    order = {
        dag_id: [
            (task.task_id, sorted(task.downstream_task_ids)) for task in dag.topological_sort()
        ]
        for dag_id, dag in bag.dags.items()
    }
    assert order == {
        "land_flights": [("land", [])],
        **{
            dag_id: [("advance", ["report"]), ("report", [])]
            for dag_id in DAG_IDS
            if dag_id.startswith("strandline_daily_")
        },
        "strandline_maintain": [("maintain", [])],
        "strandline_report": [("pipelines", ["report"]), ("report", [])],
        "strandline_reprocess": [
            ("prepare", ["approval"]),
            ("approval", ["publish"]),
            ("publish", ["report"]),
            ("report", []),
        ],
    }


def test_upkeep_is_due_once_a_week(bag):
    timetable = bag.dags["strandline_maintain"].timetable
    assert (timetable.expression, timetable.can_be_scheduled) == ("0 3 * * 0", True)


def test_the_report_dag_waits_for_what_any_pipeline_publishes(bag):
    condition = bag.dags["strandline_report"].timetable.asset_condition
    assert {asset.name for asset in condition.objects} == {
        "strandline_flights",
        "strandline_flights_daily",
        "strandline_flights_early",
        "strandline_flights_hourly",
        "strandline_strict",
    }


def test_a_pipeline_that_reads_results_waits_for_what_that_pipeline_publishes(bag):
    condition = bag.dags["strandline_daily_flights_daily"].timetable.asset_condition
    assert condition.name == "strandline_flights_hourly"


def test_a_broken_file_breaks_its_own_pipeline_only_and_is_shown(bag, tmp_path, monkeypatch):
    from airflow.dag_processing.dagbag import DagBag

    good = (PROJECT / "pipelines" / "flights.yaml").read_text(encoding="utf-8")
    (tmp_path / "flights.yaml").write_text(good, encoding="utf-8")
    (tmp_path / "tabs.yaml").write_text("pipeline:\ttabs", encoding="utf-8")
    odd = {
        "deep": "x: " + "[" * 5_000,
        "long": "x: " + "9" * 5_000,
        "bomb": "a0: &a0 [x, x]\n"
        + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
    }
    for name, text in odd.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "digits.yaml").write_text("x: 0x_", encoding="utf-8")  # no number, so a text
    (tmp_path / "typo.yaml").write_text(
        good.replace("pipeline: flights", "pipeline: typo\nwidnow: {}"), encoding="utf-8"
    )
    for name, schedule in (("cron", "99 6 * * *"), ("preset", "@nightly")):
        other = good.replace("pipeline: flights", f"pipeline: {name}")
        (tmp_path / f"{name}.yaml").write_text(
            other.replace('"0 6 * * *"', f'"{schedule}"'), encoding="utf-8"
        )
    for twin in ("one", "two"):
        (tmp_path / f"{twin}.yaml").write_text(
            good.replace("pipeline: flights", "pipeline: twin"), encoding="utf-8"
        )
    monkeypatch.setenv("STRANDLINE_PIPELINES", str(tmp_path))
    found = DagBag(PROJECT / "dags")
    assert {name for name in found.dags if "daily" in name} == {"strandline_daily_flights"}
    (said,) = found.import_errors.values()
    page = found.dags["strandline_broken"].doc_md
    for part in (
        "tabs.yaml",
        "widnow",
        "not a schedule; write the five fields of cron",
        "'@nightly' is not a cron expression",
        "one.yaml and two.yaml",
        *(f"{name}.yaml: not YAML" for name in odd),
        "digits.yaml",
    ):
        assert part in said and part in page


def test_the_dag_files_of_the_guide_are_read_as_they_are_typed(bag, tmp_path):
    """That of the import error had no word dag in it, without which Airflow reads no file."""
    from airflow.dag_processing.dagbag import DagBag

    page = (PROJECT / "docs" / "in-your-airflow.md").read_text("utf-8")
    typed = [
        code for code in page.split("```") if code.startswith("python") and "globals()" in code
    ]
    assert len(typed) == 2
    for number, code in enumerate(typed):
        (tmp_path / f"typed_{number}.py").write_text(code.removeprefix("python"), "utf-8")
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "broken.yaml").write_text("pipeline: broken", "utf-8")
    found = DagBag(tmp_path)
    assert "strandline_broken" in found.dags
    (error,) = found.import_errors.values()
    assert "pipelines: 1 broken" in error


@pytest.mark.parametrize("folder", ["empty", "missing"])
def test_without_any_pipeline_the_other_dags_are_still_read(bag, tmp_path, monkeypatch, folder):
    from airflow.dag_processing.dagbag import DagBag

    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("STRANDLINE_PIPELINES", str(tmp_path / folder))
    found = DagBag(PROJECT / "dags")
    of_all = {"maintain", "report", "reprocess"}
    of_all |= {"broken"} if folder == "missing" else set()
    assert set(found.dags) == {"land_flights", *(f"strandline_{name}" for name in of_all)}
    assert len(found.import_errors) == (folder == "missing")
