#!/usr/bin/env bash
# The flights of 2013 through Airflow: landing, a daily backfill, a range reprocessed, the report.
# Called by `make demo` after the set-up. Again, it goes through Airflow again, and changes nothing.
# ENGINE=sail has all of it computed by Sail, without Java; ENGINE=connect by a Spark Connect server.
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"
cd "$STRANDLINE_HOME"

# Later than every window of the daily run, so that neither run touches what the other published.
LAST_DAY=2013-01-15
STORM_START=2013-02-08
STORM_END=2013-02-11
ENGINE=${ENGINE:-spark}

logs=$AIRFLOW__LOGGING__BASE_LOG_FOLDER/demo
mkdir -p "$logs"
steps=4
number=0

# step TEXT DAG [ARGUMENT...]: one run of a DAG; shows how long it has been going on.
step() {
    local text=$1 dag=$2 log=$logs/$2.log run began=$SECONDS
    shift 2
    number=$((number + 1))
    airflow dags test "$dag" "$@" >"$log" 2>&1 &
    run=$!
    if [[ -t 1 ]]; then
        while kill -0 "$run" 2>/dev/null; do
            printf '\rdemo: %d/%d %s ... %d s' "$number" "$steps" "$text" $((SECONDS - began))
            sleep 1
        done
        printf '\r'
    fi
    if ! wait "$run"; then
        printf 'demo: %d/%d %s: failed after %d s\n' "$number" "$steps" "$text" $((SECONDS - began))
        grep -A 25 -m 1 'It said:' "$log" || tail -n 40 "$log"
        printf 'demo: the DAG %s has failed; all that it said: %s\n' "$dag" "${log#"$STRANDLINE_HOME"/}"
        exit 1
    fi >&2
    printf 'demo: %d/%d %s: done in %d s\n' "$number" "$steps" "$text" $((SECONDS - began))
}

trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
python scripts/demo_summary.py before >"$logs/before.json"

step "landing the flights of 2013 (DAG land_flights)" land_flights
step "daily backfill up to and with $LAST_DAY (DAG strandline_daily_flights)" strandline_daily_flights \
    "$(date --utc --date "$LAST_DAY + 1 day" +%F)T06:00:00+00:00" --conf "{\"engine\": \"$ENGINE\"}"
step "reprocessing the blizzard, $STORM_START to $STORM_END (DAG strandline_reprocess)" strandline_reprocess \
    --conf "{\"pipeline\": \"flights\", \"start\": \"$STORM_START\", \"end\": \"$STORM_END\",
             \"reason\": \"demo: the days of the blizzard once more\", \"engine\": \"$ENGINE\"}"
step "quality report (DAG strandline_report)" strandline_report --conf '{"pipeline": "flights"}'

python scripts/demo_summary.py after "$logs/before.json"
