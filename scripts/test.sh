#!/usr/bin/env bash
# All tests, four pieces side by side: one alone waits for its engine half of the time. What asks
# about rules, diffs, the ledger and the memory runs on Sail; on Apache Spark what proves it: a story
# for each kind of pipeline, a sample of the goldens, and what only it runs. The last piece has two
# processes, as no other is left beside it at the end. What a piece says is shown when it has ended.
#
# ENGINE=spark runs everything on Apache Spark instead, with all goldens, in the same pieces.
set -euo pipefail

# An engine, what of it is run, and where it stands; the longest first.
pieces() {
    local engine=${ENGINE:-sail}
    if [[ $engine != spark ]]; then
        echo "spark|spark and (story or only_on_spark)|tests/spark"
    fi
    echo "$engine|spark|tests/spark/engine"
    echo "$engine|spark|tests/spark/pipeline/test_[a-k]*.py"
    echo "$engine|spark|tests/spark/pipeline/test_[!a-k]*.py tests/spark/lake tests/spark/quality"
    echo "spark|not spark and not kill|tests/system"
    echo "spark|not spark|tests/airflow tests/figures"
    echo "spark|not spark|tests/unit -n 2"
}

run_piece() {
    local engine marks paths said
    IFS='|' read -r engine marks paths <<<"$1"
    said=$(mktemp)
    # shellcheck disable=SC2086 # several paths, some of many files
    ENGINE=$engine timeout --foreground "$LIMIT_S" \
        pytest -m "$marks and not deep and not adopt" --durations=10 \
        --timeout="$TEST_LIMIT_S" -o faulthandler_timeout=$((TEST_LIMIT_S + 100)) $paths >"$said" 2>&1 ||
        echo "$1" >>"$FAILED"
    cat "$said"
}

# The tests write and remove thousands of small files: in memory, where there is room for them.
memory_kib=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1) || memory_kib=0
if ((memory_kib > 4 * 1024 * 1024)) && [[ -z ${TMPDIR:-} ]]; then
    TMPDIR=$(mktemp -d /dev/shm/strandline-tests.XXXXXX)
    export TMPDIR
    files_in_memory=$TMPDIR
fi
FAILED=$(mktemp)
# A test that hangs fails by its name. If no signal reaches it, its stack is written, and its piece
# is ended and shown long before CI ends all.
LIMIT_S=3600
TEST_LIMIT_S=1200
if [[ ${ENGINE:-} == spark ]]; then
    export ALL_GOLDENS=1
    LIMIT_S=0 # no limit: one piece is all of them
    TEST_LIMIT_S=12000 # all goldens are one test's
fi
export FAILED LIMIT_S TEST_LIMIT_S
export -f run_piece

begun=$SECONDS
set -m # a process group of its own, so that it can be ended whole
xargs -d '\n' -P 4 -I {} bash -c 'run_piece "$1"' _ {} < <(pieces) &
group=$!
set +m
trap 'kill -- "-$group" 2>/dev/null || true; rm -rf "$FAILED" "${files_in_memory:-}"' EXIT
wait "$group"

printf 'all tests took %d minutes\n' $(((SECONDS - begun + 59) / 60))
if [[ -s $FAILED ]]; then
    printf 'failed: %s\n' "$(paste -sd ';' "$FAILED")"
    exit 1
fi
