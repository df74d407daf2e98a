"""What a table is. Everything else that knows a table's shape is generated from here.

Belongs here: table contracts, signal and metric names, error codes. Does not belong here: rows,
files, queries, or anything that imports another part of evalpipe.
"""
