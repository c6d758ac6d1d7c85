"""Apache Spark and object stores: the settings that follow from the environment, and a refusal."""

from __future__ import annotations

import pytest

from strandline.errors import InputError
from strandline.lake.sessions.settings import s3a_settings
from strandline.lake.store.places import for_hadoop

JARS = {"spark.jars.packages": "org.apache.hadoop:hadoop-aws:3.5.0"}
SAID = {"AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_REGION": "r", "AWS_ENDPOINT_URL": "http://here"}


def test_without_the_package_spark_is_refused_before_it_starts():
    with pytest.raises(InputError, match=r"spark\.jars\.packages: .*hadoop-aws:3.*--engine sail"):
        s3a_settings({}, {})
    assert s3a_settings({"PYSPARK_GATEWAY_PORT": "1"}, {})
    assert s3a_settings({}, JARS)


def test_endpoint_and_region_are_those_of_the_environment_and_no_secret_is_a_setting():
    found = s3a_settings(SAID, JARS)
    assert found["spark.hadoop.fs.s3a.endpoint"] == "http://here"
    assert found["spark.hadoop.fs.s3a.endpoint.region"] == "r"
    assert found["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert "s3cret" not in str(found)


def test_hadoop_names_s3_by_the_file_system_that_reads_it():
    assert for_hadoop("s3://bucket/lake") == "s3a://bucket/lake"
    assert for_hadoop("/s3://lake") == "/s3://lake"
