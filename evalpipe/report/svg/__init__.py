"""Drawings: pure functions from numbers to SVG text.

Belongs here: positions and marks. Does not belong here: colours (CSS classes only), words, and
numbers that are not in the report object. Horizontal positions are percentages, so that a drawing
stretches with its column and its markers keep their form; nothing needs a script.
"""
