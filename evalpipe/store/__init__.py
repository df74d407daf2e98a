"""Where data lies: the lake of Parquet slices, the landing zone, the warehouse, SQL models.

Belongs here: files, manifests, atomic commits, staleness. Does not belong here: how a table is
computed, or any orchestrator.
"""
