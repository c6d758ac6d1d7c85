#!/usr/bin/env bash
# Puts all that Strandline needs into the project folder: .venv (Python, Spark, Delta, Airflow) and
# .airflow. Safe to run at any time; when nothing has changed it takes about a second.
#
#   setup.sh                 everything
#   setup.sh dependencies    Python, Java, the locked packages and Delta's jars (the image's first layer)
#   setup.sh project         that, and the project itself
#
# PYTHON=/path/to/python3 chooses the interpreter; JAVA_HOME, where it fits, the Java. With ENGINE=sail or
# ENGINE=connect nothing of Java is looked for, fetched or rehearsed; a later set-up without it does that.
set -euo pipefail

readonly UNTIL=${1:-everything}
HOME_FOLDER=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly HOME_FOLDER
readonly VENV=$HOME_FOLDER/.venv
readonly LOG=$VENV/share/strandline/setup.log
readonly STAMPS=$VENV/share/strandline
readonly ENGINE=${ENGINE:-spark}

say() { printf 'set-up: %s\n' "$*"; }

fail() {
    printf 'set-up: %s\n' "$*" >&2
    exit 1
}

# ------------------------------------------------------------------------- what the machine provides

is_debian() {
    command -v apt-get >/dev/null && command -v apt-cache >/dev/null
}

# The first of these Debian packages that there is.
first_available() {
    local package
    for package in "$@"; do
        if [[ $(apt-cache policy "$package" 2>/dev/null) == *"Candidate: "[!\(]* ]]; then
            printf '%s\n' "$package"
            return
        fi
    done
    return 1
}

# provide PROBLEM PACKAGE...: installs the first package that there is, as root on Debian or Ubuntu;
# anyone else is told in one sentence what to type.
provide() {
    local problem=$1 package
    shift
    is_debian || fail "$problem; install it with your system's package manager, then run this again."
    if [[ $(id -u) != 0 ]]; then
        package=$(first_available "$@") || package=$1
        fail "$problem; type: sudo apt-get update && sudo apt-get install -y $package"
    fi
    say "$problem: asking apt-get"
    apt-get update -qq >&2 || fail "$problem, and apt-get update failed: is there a network?"
    package=$(first_available "$@") ||
        fail "$problem, and this system's package sources have none of: $*; install one and run this again."
    say "installing $package"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
        fail "$problem, and apt-get could not install $package: is there a network?"
}

needs_java() {
    [[ $ENGINE == spark ]]
}

check_engine() {
    case $ENGINE in
        spark | connect | sail) ;;
        *) fail "ENGINE=$ENGINE is no engine; they are spark, connect and sail." ;;
    esac
}

check_tools() {
    local tool
    [[ $HOME_FOLDER != *[[:space:]]* ]] ||
        fail "Spark's scripts cannot run below a path with a space in it ($HOME_FOLDER); move the project."
    for tool in awk flock grep mkdir sha256sum tail; do
        command -v "$tool" >/dev/null || fail "the command $tool is missing; install it and run this again."
    done
}

# Prints 3.x if the command runs and is a Python.
python_version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

# Sets PYTHON_FOUND to the first fitting interpreter; else PYTHON_SEEN says which there were.
look_for_python() {
    local candidate version
    PYTHON_FOUND='' PYTHON_SEEN=''
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        version=$(python_version "$candidate") || continue
        case $version in
            3.11 | 3.12 | 3.13)
                PYTHON_FOUND=$candidate
                return
                ;;
        esac
        PYTHON_SEEN+="${PYTHON_SEEN:+, }$candidate is Python $version"
    done
    return 1
}

check_python() {
    look_for_python && return
    [[ -z ${PYTHON:-} ]] || fail "PYTHON=$PYTHON is no Python 3.11 to 3.13 (${PYTHON_SEEN:-it does not run})."
    provide "Python 3.11 to 3.13 is missing (${PYTHON_SEEN:-there is no python3})" \
        python3.13-venv python3.12-venv python3.11-venv
    look_for_python || fail "Python 3.11 to 3.13 is still missing (${PYTHON_SEEN:-there is no python3})."
}

check_venv_module() {
    local version
    "$PYTHON_FOUND" -c 'import ensurepip, venv' 2>/dev/null && return
    version=$(python_version "$PYTHON_FOUND")
    provide "$PYTHON_FOUND has no venv module" "python$version-venv" python3-venv
    "$PYTHON_FOUND" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$PYTHON_FOUND still has no venv module; name another interpreter with PYTHON=/path/to/python3."
}

# Sets JAVA_FOUND to the home of the first fitting Java and JAVA_BUILD to what it is; else JAVA_SEEN says
# which there were. Spark
# needs the module jdk.incubator.vector, which some cut-down runtimes leave out.
look_for_java() {
    local java properties version
    JAVA_FOUND='' JAVA_BUILD='' JAVA_SEEN=''
    for java in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} java "${STRANDLINE_JVM_FOLDER:-/usr/lib/jvm}"/*/bin/java; do
        command -v "$java" >/dev/null || continue
        properties=$("$java" --add-modules jdk.incubator.vector -XshowSettings:properties -version 2>&1) ||
            properties=''
        version=$(awk '$1 == "java.specification.version" { print $3 }' <<<"$properties")
        case $version in
            17 | 21)
                JAVA_FOUND=$(awk -F ' = ' '/^ *java\.home = / { print $2 }' <<<"$properties")
                JAVA_BUILD=$(awk -F ' = ' '/^ *java\.vm\.version = / { print $2 }' <<<"$properties")
                return
                ;;
        esac
        JAVA_SEEN+="${JAVA_SEEN:+, }$java is ${version:+Java }${version:-not one that Spark can use}"
    done
    return 1
}

check_java() {
    look_for_java && return
    provide "Java 17 or 21 is missing (${JAVA_SEEN:-there is no java})" \
        openjdk-17-jre-headless openjdk-21-jre-headless
    look_for_java || fail "Java 17 or 21 is still missing (${JAVA_SEEN:-there is no java})."
}

# ------------------------------------------------------------------------------- the environment

# networked STEP COMMAND...: runs the command quietly; a failure is one sentence where it was the network.
networked() {
    local step=$1 sources="PyPI and Maven Central"
    shift
    needs_java || sources=PyPI
    "$@" >"$LOG" 2>&1 && return
    if grep -qiE 'connection|connect error|name resolution|failed to resolve|timed out|unreachable|unknownhost|dns error|failed to fetch|no matching distribution|proxy server' "$LOG"; then
        fail "$step failed for want of a network: the set-up needs $sources once (or your mirrors); go online and run it again (details: ${LOG#"$HOME_FOLDER"/})."
    fi
    tail -n 40 "$LOG" >&2
    fail "$step failed, see above (all of it: ${LOG#"$HOME_FOLDER"/})."
}

# What a step was made from; it is done again when that has changed.
stamp_of() {
    { printf '%s %s ' "$HOME_FOLDER" "$PYTHON_VERSION" && cat "$@"; } | sha256sum
}

is_done() {
    [[ -f $STAMPS/$1 && $(<"$STAMPS/$1") == "$2" ]]
}

make_venv() {
    local version=''
    if [[ -e $VENV/bin/python ]]; then
        version=$(python_version "$VENV/bin/python") || version=''
    fi
    # A moved folder leaves an environment whose scripts point to the old place.
    if [[ $version == 3.1[123] ]] && grep -qF "$VENV" "$VENV/bin/activate" && [[ -z ${PYTHON:-} || $(python_version "$PYTHON") == "$version" ]]; then
        PYTHON_VERSION=$version
    else
        # --clear would empty the folder that it leads to, which may be another checkout's
        [[ ! -L $VENV ]] || fail ".venv is a link; remove it, then run this again."
        check_python
        check_venv_module
        say "making .venv with $("$PYTHON_FOUND" --version)"
        "$PYTHON_FOUND" -m venv --clear "$VENV"
        PYTHON_VERSION=$(python_version "$VENV/bin/python")
    fi
    mkdir -p "$STAMPS"
}

# The lines of one package in the lock.
locked() {
    awk -v name="$1==" 'index($0, name) == 1 { on = 1; print; next } /^[^ ]/ { on = 0 } on' \
        "$HOME_FOLDER/requirements.lock"
}

install_packages() {
    local stamp
    stamp=$(stamp_of "$HOME_FOLDER/requirements.lock")
    is_done packages "$stamp" && return
    say "installing the locked packages (a minute or two when nothing is cached)"
    rm -f "$STAMPS/project"
    { locked uv && locked setuptools; } >"$STAMPS/bootstrap.txt"
    networked "installing uv" "$VENV/bin/python" -m pip install \
        --disable-pip-version-check --no-deps --require-hashes --requirement "$STAMPS/bootstrap.txt"
    # Without build isolation, so that a source distribution too is built by what the lock names.
    networked "installing the locked packages" "$VENV/bin/uv" pip sync --python "$VENV/bin/python" \
        --require-hashes --no-build-isolation "$HOME_FOLDER/requirements.lock"
    # Compiled at once: an environment may forbid Python to do so later, and every start would pay.
    # Half of all that is installed nobody imports. Some packages bring files that are no Python 3.
    "$VENV/bin/python" -m compileall -q -j 0 -x '/(tests?|kubernetes|kubernetes_asyncio|pip)/' \
        "$VENV/lib" >"$LOG" 2>&1 || true
    printf '%s\n' "$stamp" >"$STAMPS/packages"
}

prepare_spark() {
    local conf=$VENV/lib/python$PYTHON_VERSION/site-packages/pyspark/conf wanted
    wanted="export JAVA_HOME='$JAVA_FOUND' PYSPARK_PYTHON='$VENV/bin/python'"
    # Spark's own scripts read this file: its sessions find Java wherever they are started from.
    if [[ ! -f $conf/spark-env.sh || $(<"$conf/spark-env.sh") != "$wanted" ]]; then
        mkdir -p "$conf"
        printf '%s\n' "$wanted" >"$conf/spark-env.sh"
    fi
    JAVA_HOME=$JAVA_FOUND networked "fetching Delta's jars" "$VENV/bin/python" "$HOME_FOLDER/scripts/fetch_jars.py"
}

install_project() {
    local stamp
    stamp=$(stamp_of "$HOME_FOLDER/pyproject.toml" "$STAMPS/packages")
    is_done project "$stamp" && return
    say "installing the strandline command"
    networked "installing the project" "$VENV/bin/uv" pip install --python "$VENV/bin/python" \
        --offline --no-build-isolation --no-deps --editable "$HOME_FOLDER"
    # left over by the build: a Python started here would find the project, and its plugin, twice
    rm -rf "$HOME_FOLDER/strandline.egg-info"
    printf '%s\n' "$stamp" >"$STAMPS/project"
}

# Starts take some seconds longer where there is no archive; nothing else depends on it.
archive_classes() {
    local stamp log=$STAMPS/rehearsal.log # beside the next step, which has the other
    stamp="$JAVA_FOUND $JAVA_BUILD $(stamp_of "$STAMPS/packages" "$HOME_FOLDER/scripts/archive_classes.py")"
    is_done classes "$stamp" && return
    say "rehearsing a run, so that the next ones start sooner"
    # shellcheck source=scripts/env.sh
    if (source "$HOME_FOLDER/scripts/env.sh" && JAVA_HOME=$JAVA_FOUND "$VENV/bin/python" "$HOME_FOLDER/scripts/archive_classes.py") >"$log" 2>&1; then
        printf '%s\n' "$stamp" >"$STAMPS/classes"
    else
        say "the rehearsal failed, and starts stay as slow as they are (details: ${log#"$HOME_FOLDER"/})"
    fi
}

make_airflow_home() {
    local stamp
    stamp=$(stamp_of "$STAMPS/packages")
    # shellcheck source=scripts/env.sh
    source "$HOME_FOLDER/scripts/env.sh"
    if is_done airflow "$stamp" && [[ -f $AIRFLOW_HOME/airflow.db ]]; then
        return
    fi
    say "making the Airflow home .airflow"
    (umask 077 && mkdir -p "$AIRFLOW_HOME") # Airflow writes the keys that it makes into it
    "$VENV/bin/airflow" db migrate >"$LOG" 2>&1 || {
        tail -n 40 "$LOG" >&2
        fail "airflow db migrate failed, see above."
    }
    printf '%s\n' "$stamp" >"$STAMPS/airflow"
}

case $UNTIL in
    dependencies | project | everything) ;;
    *) fail "there is no step '$UNTIL'; the steps are dependencies, project and everything." ;;
esac
check_tools
check_engine
exec 9<"$HOME_FOLDER"
flock 9 # two at once: the second waits, then finds all of it done
if needs_java; then check_java; fi
make_venv
install_packages
if needs_java; then prepare_spark; fi
[[ $UNTIL != dependencies ]] || exit 0
install_project
if needs_java; then
    set -m # a process group of its own, so that it can be ended whole
    archive_classes </dev/null 9<&- &
    rehearsal=$!
    set +m
    trap 'kill -- "-$rehearsal" 2>/dev/null || true' EXIT
fi
[[ $UNTIL == project ]] || make_airflow_home
wait
