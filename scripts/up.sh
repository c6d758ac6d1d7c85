#!/usr/bin/env bash
# Airflow with its UI on 127.0.0.1, over this project's DAGs and lake, until Ctrl-C. PORT chooses the port.
# What `airflow standalone` would start, less its log servers, which listen on every interface.
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

port=${PORT:-8080}
url=http://127.0.0.1:$port
logs=$AIRFLOW__LOGGING__BASE_LOG_FOLDER/up
export AIRFLOW__API__HOST=127.0.0.1 AIRFLOW__API__PORT=$port AIRFLOW__API__BASE_URL=$url
# A proxy for the outside is none for the parts of Airflow among themselves.
export no_proxy=127.0.0.1,localhost${no_proxy:+,$no_proxy}
export NO_PROXY=$no_proxy
mkdir -p "$logs"

if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    echo "up: port $port is taken; type: make up PORT=$((port + 1))" >&2
    exit 1
fi

healthy() {
    python - "$url/api/v2/monitor/health" <<'PYTHON'
import json, sys, urllib.request

direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with direct.open(sys.argv[1], timeout=2) as answer:
    parts = json.load(answer)
sys.exit(any(parts[part]["status"] != "healthy" for part in ("metadatabase", "scheduler", "dag_processor")))
PYTHON
}

names=(api-server scheduler dag-processor triggerer)
declare -A pids=()
stop() {
    trap - EXIT INT TERM
    kill "${pids[@]}" 2>/dev/null || true
    wait
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for name in "${names[@]}"; do
    options=()
    case $name in scheduler | triggerer) options=(--skip-serve-logs) ;; esac
    airflow "$name" "${options[@]}" >"$logs/$name.log" 2>&1 &
    pids[$name]=$!
done

echo "up: starting Airflow (its logs: ${logs#"$STRANDLINE_HOME"/})"
ready=false
while true; do
    for name in "${names[@]}"; do
        if ! kill -0 "${pids[$name]}" 2>/dev/null; then
            tail -n 20 "$logs/$name.log" >&2
            echo "up: the $name has ended; the lines above are its last" >&2
            exit 1
        fi
    done
    if ! $ready && healthy 2>/dev/null; then
        ready=true
        echo "up: $url is ready: log in as admin, with the password that stands in"
        echo "up: ${AIRFLOW_HOME#"$STRANDLINE_HOME"/}/simple_auth_manager_passwords.json.generated"
        echo "up: Ctrl-C ends it"
    fi
    sleep 2
done
