#!/usr/bin/env bash
# The wheel in a clean environment, an Airflow home of its own with a DAG file of two lines, and a day
# of the flights for real: on Sail without Java on the PATH, then on Apache Spark.
#
# Packages come from the package index, as versions of the lock. KEEP=folder keeps what it makes.
set -euo pipefail

HOME_FOLDER=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
UV=$HOME_FOLDER/.venv/bin/uv
MADE=${KEEP:-$(mktemp -d)}
mkdir -p "$MADE"
[[ -n ${KEEP:-} ]] || trap 'rm -rf "$MADE"' EXIT

# A build leaves folders beside its sources: it is one of a copy.
build_wheel() {
    mkdir -p "$MADE/sources" "$MADE/wheel"
    (cd "$HOME_FOLDER" && cp -r jobs plugins pyproject.toml README.md LICENSE "$MADE/sources/")
    (cd "$MADE/sources" && "$HOME_FOLDER/.venv/bin/python" -c \
        'import setuptools.build_meta as b, sys; b.build_wheel(sys.argv[1])' "$MADE/wheel") >/dev/null
    sed -E 's/ *\\$//; /^ *--hash/d' "$HOME_FOLDER/requirements.lock" >"$MADE/constraints.txt"
}

# adopt ENGINE EXTRAS: an environment with these extras, and the DAG's run in it.
adopt() {
    local engine=$1 extras=$2 home=$MADE/$1 programs=$PATH wheel
    wheel=$(echo "$MADE"/wheel/strandline-*.whl)
    mkdir -p "$home/dags/pipelines"
    "$UV" venv --quiet --python "$HOME_FOLDER/.venv/bin/python" "$home/venv"
    "$UV" pip install --quiet --python "$home/venv/bin/python" --constraint "$MADE/constraints.txt" \
        "strandline[$extras] @ file://$wheel"
    cp "$HOME_FOLDER/pipelines/flights.yaml" "$home/dags/pipelines/"
    printf 'from strandline_airflow import strandline_dags\n\nstrandline_dags("pipelines/", globals())\n' \
        >"$home/dags/mine.py"
    if [[ $engine == sail ]]; then # just what a shell script needs, so no Java
        programs=$home/programs
        mkdir -p "$programs"
        for tool in bash cat dirname env id ls sh uname; do ln -s "$(command -v "$tool")" "$programs/"; done
    fi
    run() {
        (cd / && env -i HOME="$home" PATH="$programs" ${JAVA_HOME:+JAVA_HOME="$JAVA_HOME"} \
            AIRFLOW_HOME="$home/airflow" AIRFLOW__CORE__DAGS_FOLDER="$home/dags" \
            AIRFLOW__CORE__LOAD_EXAMPLES=False STRANDLINE_LAKE="$home/lake" \
            STRANDLINE_TRUST_THIS_MACHINE="${STRANDLINE_TRUST_THIS_MACHINE:-}" \
            AIRFLOW_CONN_SPARK_DEFAULT='{"conn_type": "spark", "host": "local[2]"}' \
            AIRFLOW_CONN_STRANDLINE_ENGINE="{\"conn_type\": \"strandline\", \"extra\": {\"engine\": \"$engine\"}}" \
            "$@")
    }
    STRANDLINE_LAKE=$home/lake "$HOME_FOLDER/.venv/bin/python" "$HOME_FOLDER/jobs/land_flights.py"
    run "$home/venv/bin/airflow" db migrate >"$home/migrate.log" 2>&1
    [[ $engine == sail ]] || run "$home/venv/bin/strandline" jars
    run "$home/venv/bin/airflow" dags test strandline_daily_flights 2013-01-03 >"$home/run.log" 2>&1 ||
        { tail -n 40 "$home/run.log"; exit 1; }
    run "$home/venv/bin/strandline" --pipelines "$home/dags/pipelines" status
    [[ -s $home/lake/flights/_reports/report.html ]]
    echo "adopted on $engine: strandline[$extras]"
}

build_wheel
adopt sail airflow,sail,example
adopt spark airflow-spark,example
