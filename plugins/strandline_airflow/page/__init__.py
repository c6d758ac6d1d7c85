"""The page "Strandline" in Airflow: pipelines, their calendars of completeness, their slots."""
