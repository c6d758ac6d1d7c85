#!/usr/bin/env bash
# All tests in two processes side by side: those that share one Spark session, and all others, which
# mostly wait for processes of their own, JVMs among them. What the others say is shown at the end.
set -euo pipefail

others_said=$(mktemp)
pytest -m 'not spark and not deep' --durations=10 >"$others_said" 2>&1 &
others=$!
trap 'kill "$others" 2>/dev/null || true; rm -f "$others_said"' EXIT

failed=0
pytest -m 'spark and not deep' --durations=25 || failed=$?
wait "$others" || failed=$?
cat "$others_said"
exit "$failed"
