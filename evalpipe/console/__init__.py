"""What the command line shows and the order in which it calls steps.

Belongs here: progress bars, tables that fit a terminal, the flow of a run. Does not belong here:
verbs and their options (``cli.py``), or any logic of a layer.
"""
