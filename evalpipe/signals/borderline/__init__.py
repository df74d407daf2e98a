"""The borderline classifier: what a person may have meant where no pattern fires.

Belongs here: its features, weights, training and measurement. Does not belong here: patterns, and
anything that counts: what the classifier says is a candidate for review and no outcome reads it.
"""
