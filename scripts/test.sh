#!/usr/bin/env bash
# All tests in two halves side by side, of about the same length. What asks about rules, diffs, the
# ledger and the memory runs on Sail; beside it all that needs no session here, then what proves
# Apache Spark: a story for each kind of pipeline, a sample of the goldens, and what only it runs.
# What the second half says is shown at the end.
#
# ENGINE=spark runs everything on Apache Spark instead, with all goldens.
set -euo pipefail

first_half() {
    if [[ ${ENGINE:-} == spark ]]; then
        ALL_GOLDENS=1 pytest -m 'spark and not deep' --durations=25 tests/spark
        return
    fi
    ENGINE=sail pytest -m 'spark and not deep' --durations=25 tests/spark
}

second_half() {
    local failed=0
    ENGINE=spark pytest -m 'not spark and not deep and not kill' --durations=10 || failed=$?
    if [[ ${ENGINE:-} != spark ]]; then
        ENGINE=spark pytest -m 'spark and not deep and (story or only_on_spark)' \
            --durations=10 tests/spark || failed=$?
    fi
    return "$failed"
}

# The tests write and remove thousands of small files: in memory, where there is room for them.
memory_kib=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1) || memory_kib=0
if ((memory_kib > 4 * 1024 * 1024)) && [[ -z ${TMPDIR:-} ]]; then
    TMPDIR=$(mktemp -d /dev/shm/strandline-tests.XXXXXX)
    export TMPDIR
    files_in_memory=$TMPDIR
fi

begun=$SECONDS
second_half_said=$(mktemp)
set -m # a process group of its own, so that it can be ended whole
second_half >"$second_half_said" 2>&1 &
group=$!
set +m
trap 'kill -- "-$group" 2>/dev/null || true; rm -rf "$second_half_said" "${files_in_memory:-}"' EXIT

failed=0
first_half || failed=$?
wait "$group" || failed=$?
cat "$second_half_said"
printf 'all tests took %d minutes\n' $(((SECONDS - begun + 59) / 60))
exit "$failed"
