#!/usr/bin/env bash
# The laws with what `make test` does not draw: more of it, and other each time. Says what draws the
# same again; a pure law that fails prints the very example, made small, and a blob that repeats it.
set -euo pipefail

export EXAMPLES="${EXAMPLES:-5000}" ROUNDS="${ROUNDS:-5}"
SEED="${SEED:-$RANDOM$RANDOM}"
again="the same again: make test-deep SEED=$SEED EXAMPLES=$EXAMPLES ROUNDS=$ROUNDS"
echo "$again"
pytest -m "hypothesis or deep" --hypothesis-profile=deep --hypothesis-seed="$SEED" "$@" || {
    code=$?
    echo "$again"
    exit "$code"
}
