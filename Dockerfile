# One image for Airflow's services and for Spark's; the same set-up as on a developer's machine.
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/strandline
ENV PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1

COPY requirements.lock ./
COPY scripts/setup.sh scripts/fetch_jars.py scripts/
COPY jobs/strandline/__init__.py jobs/strandline/errors.py jobs/strandline/visible.py jobs/strandline/
COPY jobs/strandline/lake/__init__.py jobs/strandline/lake/jars.py jobs/strandline/lake/jars.lock jobs/strandline/lake/
RUN bash scripts/setup.sh dependencies

COPY . .
RUN bash scripts/setup.sh project \
    && useradd --uid 10001 --create-home strandline \
    && install -d -o strandline -g strandline -m 700 .airflow \
    && install -d -o strandline -g strandline lake store \
    && install -d pipelines

USER strandline
ENTRYPOINT ["tini", "--", "bash", "/opt/strandline/scripts/entrypoint.sh"]
CMD ["strandline", "--help"]
