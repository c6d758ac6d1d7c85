#!/usr/bin/env bash
# The entry of the container image: the project's environment, then the command.
set -euo pipefail
# shellcheck source=scripts/env.sh
source "$(dirname "${BASH_SOURCE[0]}")/env.sh"

# Airflow's simple auth manager reads its passwords from a file only.
if [[ -n ${AIRFLOW_ADMIN_PASSWORD:-} ]]; then
    (umask 077 && python -c 'import json, os; print(json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}))' \
        >"$AIRFLOW_HOME/simple_auth_manager_passwords.json.generated")
    unset AIRFLOW_ADMIN_PASSWORD
fi
exec "$@"
