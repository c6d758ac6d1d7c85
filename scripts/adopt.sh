#!/usr/bin/env bash
# The wheel in clean environments, each with an Airflow home of its own and a DAG file of two lines:
# a DAG run of a day of the flights, a day more by the command, all tables held against each other.
# On Sail there is no Java on the PATH. Whatever the versions, the windows must be the same rows.
#
#   adopt.sh                the versions of the lock, on Sail and on Apache Spark
#   adopt.sh lowest newest  the lowest and the newest versions that pyproject.toml allows
#
# Packages come from the package index. KEEP=folder keeps what it makes.
set -euo pipefail

HOME_FOLDER=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
OWN=$HOME_FOLDER/.venv/bin
MADE=${KEEP:-$(mktemp -d)}
mkdir -p "$MADE"
[[ -n ${KEEP:-} ]] || trap 'rm -rf "$MADE"' EXIT
RESULTS=$MADE/results.tsv
: >"$RESULTS"

say() { printf '%s  %s\n' "$(date +%H:%M:%S)" "$*"; }

# quietly LOG COMMAND...: what it says goes to a file, whose end is shown where it fails.
quietly() {
    local log=$1
    shift
    "$@" >>"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        say "failed: $* (all it said: $log)" >&2
        return 1
    }
}

build_wheel() {
    "$OWN/python" - "$HOME_FOLDER" "$MADE/wheel" <<'PYTHON'
import os, sys
from pathlib import Path
from strandline.packing.builds import Uv, wheel_of

into = Path(sys.argv[2])
into.mkdir(exist_ok=True)
wheel_of(Path(sys.argv[1]), into, Uv.installed(os.environ))
PYTHON
    WHEEL=$(echo "$MADE"/wheel/strandline-*.whl)
    sed -E 's/ *\\$//; /^ *--hash/d' "$HOME_FOLDER/requirements.lock" >"$MADE/locked.txt"
}

# install SET EXTRAS: the wheel, and what it asks for in these versions.
install() {
    local which=$1 extras=$2 python=$home/venv/bin/python extra chosen=()
    "$OWN/uv" venv --quiet --python "$OWN/python" "$home/venv"
    for extra in ${extras//,/ }; do chosen+=(--extra "$extra"); done
    case $which in
        locked) chosen+=(--constraint "$MADE/locked.txt") ;;
        lowest) chosen+=(--resolution lowest-direct) ;;
        newest) chosen+=(--resolution highest) ;;
    esac
    quietly "$home/install.log" "$OWN/uv" pip install --python "$python" "${chosen[@]}" \
        --requirement "$HOME_FOLDER/pyproject.toml"
    quietly "$home/install.log" "$OWN/uv" pip install --python "$python" --no-deps "$WHEEL"
    quietly "$home/install.log" "$OWN/uv" pip check --python "$python"
}

# In the environment, from a strange folder, with nothing else of this machine's.
run() {
    (cd / && env -i HOME="$home" PATH="$programs" ${JAVA_HOME:+JAVA_HOME="$JAVA_HOME"} \
        AIRFLOW_HOME="$home/airflow" AIRFLOW__CORE__DAGS_FOLDER="$home/dags" \
        AIRFLOW__CORE__LOAD_EXAMPLES=False STRANDLINE_LAKE="$home/lake" \
        STRANDLINE_PIPELINES="$home/dags/pipelines" STRANDLINE_ENGINE="$engine" \
        STRANDLINE_TRUST_THIS_MACHINE="${STRANDLINE_TRUST_THIS_MACHINE:-}" \
        AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]"}' \
        AIRFLOW_CONN_STRANDLINE_ENGINE="{\"conn_type\": \"strandline\", \"extra\": {\"engine\": \"$engine\"}}" \
        "$home/venv/bin/$1" "${@:2}")
}

use() {
    local log=$home/run.log
    quietly "$log" run airflow db migrate
    [[ $engine == sail ]] || quietly "$log" run strandline jars
    quietly "$log" run airflow dags test strandline_daily_flights 2013-01-03
    grep -qF '"status": "published"' "$log" || grep -qF 'published' "$log"
    [[ -s $home/lake/flights/_reports/report.html ]]
    quietly "$log" run strandline advance flights --to 2013-01-03
    quietly "$log" run strandline status flights --deep
    quietly "$log" run strandline read flights windows --output "$home/windows.csv" \
        --columns window_start,window_end,origin,carrier,departures,total_miles,mean_delay_min,longest_air_time_min,records,late_accepted,firings,state,fired_at,closed_at
}

# adopt SET ENGINE EXTRAS: an environment, what is done in it, and a line of the table.
adopt() {
    local which=$1 engine=$2 extras=$3 home=$MADE/$1-$2 programs=/usr/local/bin:/usr/bin:/bin begun=$SECONDS passed=FAILED
    say "$which versions, on $engine: strandline[$extras]"
    mkdir -p "$home/dags/pipelines"
    cp "$HOME_FOLDER/pipelines/flights.yaml" "$home/dags/pipelines/"
    printf 'from strandline_airflow import strandline_dags\n\nstrandline_dags("pipelines/", globals())\n' \
        >"$home/dags/mine.py"
    if [[ $engine == sail ]]; then # just what a shell script needs, so no Java
        programs=$home/programs
        mkdir -p "$programs"
        for tool in bash cat dirname env id ls sh uname; do ln -sf "$(command -v "$tool")" "$programs/"; done
    fi
    STRANDLINE_LAKE=$home/lake quietly "$home/run.log" "$OWN/python" "$HOME_FOLDER/jobs/land_flights.py"
    set +e # a function that is asked whether it failed does not stop where it does
    (
        set -e
        install "$which" "$extras"
        use
    )
    [[ $? == 0 ]] && passed=passed
    set -e
    "$home/venv/bin/python" - "$which" "$engine" "$passed" $((SECONDS - begun)) "$home/windows.csv" >>"$RESULTS" <<'PYTHON'
import hashlib, sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

def of(package):
    try:
        return version(package)
    except PackageNotFoundError:
        return "-"

*said, rows = sys.argv[1:]
rows = Path(rows)
text = "\n".join(sorted(rows.read_text().splitlines())) if rows.is_file() else ""
found = hashlib.sha256(text.encode()).hexdigest()[:8] if text else "-"
packages = "apache-airflow deltalake great-expectations pyarrow pyspark delta-spark pyspark-client pysail".split()
print(*said, found, *map(of, packages), sep="\t")
PYTHON
}

# The table, and whether all have passed with the same rows.
conclude() {
    "$OWN/python" - "$RESULTS" <<'PYTHON'
import sys
from pathlib import Path

names = "versions engine result seconds windows airflow deltalake gx pyarrow pyspark delta-spark client pysail".split()
rows = [line.split("\t") for line in Path(sys.argv[1]).read_text().splitlines()]
widths = [max(map(len, column)) for column in zip(names, *rows)]
for row in [names, *rows]:
    print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
same = len({row[4] for row in rows}) == 1
if not same:
    print("the windows differ: see the column windows, a hash of all rows")
sys.exit(not (same and all(row[2] == "passed" for row in rows)))
PYTHON
}

build_wheel
for which in "${@:-locked}"; do
    adopt "$which" sail airflow,sail,example
    adopt "$which" spark airflow-spark,example
done
conclude
