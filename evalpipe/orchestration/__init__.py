"""The Dagster shell: partitions, resources, assets, checks, jobs, schedules, sensors.

Belongs here: when things run and what the UI shows. Does not belong here: how a table is computed
(``steps`` and the layers). This is the only package that imports dagster.
"""
