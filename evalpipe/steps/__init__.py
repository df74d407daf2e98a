"""Steps: the glue that reads the lake, calls one layer's pure kernel, and commits the slice.

Belongs here: one module a step, as plain functions that the command line and Dagster both call.
Does not belong here: rules of a layer (``sources``, ``masking``, ``signals``, ``analysis``), or any
orchestrator. The layers never import each other; they meet in the tables that steps pass on.
"""
