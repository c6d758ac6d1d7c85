#!/usr/bin/env bash
# All tests in two halves side by side, of about the same length: the runs over real tables and the
# goldens, which share one Spark session; and all that need no Spark here, then the engine's laws and
# edges in a session of their own. What the second half says is shown at the end.
set -euo pipefail

engine=(
    tests/spark/engine/test_engine_{aggregates,edges,laws,parts,source}.py
    tests/spark/engine/test_{letting_go_law,pairs_law,retired_channels,session_laws,transcripts_on_spark}.py
)

second_half() {
    local failed=0
    pytest -m 'not spark and not deep and not kill' --durations=10 || failed=$?
    pytest -m 'not deep' --durations=10 "${engine[@]}" || failed=$?
    return "$failed"
}

second_half_said=$(mktemp)
set -m # a process group of its own, so that it can be ended whole
second_half >"$second_half_said" 2>&1 &
group=$!
set +m
trap 'kill -- "-$group" 2>/dev/null || true; rm -f "$second_half_said"' EXIT

failed=0
pytest -m 'spark and not deep' --durations=25 "${engine[@]/#/--ignore=}" || failed=$?
wait "$group" || failed=$?
cat "$second_half_said"
exit "$failed"
