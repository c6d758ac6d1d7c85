# The environment of every command of this project; sourced by the Makefile and by the scripts.
# What is set already wins (docker-compose.yml relies on it), but for the Airflow home: an AIRFLOW_HOME
# left over from other work must not receive this project's runs.
# shellcheck shell=bash

STRANDLINE_HOME="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export STRANDLINE_HOME
export STRANDLINE_LAKE="${STRANDLINE_LAKE:-$STRANDLINE_HOME/lake}"
export STRANDLINE_PIPELINES="${STRANDLINE_PIPELINES:-$STRANDLINE_HOME/pipelines}"

unset PYTHONHOME SPARK_HOME # another Python's, another Spark's
# Where Python may not keep what it has compiled, each command compiles the project's modules once more.
unset PYTHONDONTWRITEBYTECODE
export PATH="$STRANDLINE_HOME/.venv/bin:$PATH"

# JAVA_HOME and PYSPARK_PYTHON, as the set-up found them, stand where Spark itself reads them.
for spark_env in "$STRANDLINE_HOME"/.venv/lib/python3.*/site-packages/pyspark/conf/spark-env.sh; do
    # shellcheck source=/dev/null
    [ ! -f "$spark_env" ] || . "$spark_env"
done
unset spark_env

export AIRFLOW_HOME="$STRANDLINE_HOME/.airflow"
export AIRFLOW__CORE__DAGS_FOLDER="$STRANDLINE_HOME/dags"
export AIRFLOW__CORE__PLUGINS_FOLDER="$STRANDLINE_HOME/plugins"
export AIRFLOW__CORE__LOAD_EXAMPLES="${AIRFLOW__CORE__LOAD_EXAMPLES:-False}"
export AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="${AIRFLOW__DATABASE__SQL_ALCHEMY_CONN:-sqlite:///$AIRFLOW_HOME/airflow.db}"
export AIRFLOW__LOGGING__BASE_LOG_FOLDER="$AIRFLOW_HOME/logs"
# JSON: a URI cannot hold `local[*]`.
export AIRFLOW_CONN_SPARK_DEFAULT="${AIRFLOW_CONN_SPARK_DEFAULT:-{\"conn_type\": \"spark\", \"host\": \"local[*]\"\}}"
