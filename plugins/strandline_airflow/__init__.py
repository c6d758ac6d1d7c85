"""Strandline in Airflow: what its DAGs share. It imports no pyspark: DAG files parse quickly."""
