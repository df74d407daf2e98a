"""Versions that were not assigned at random: weighting, regression, and how far chance of routing could mislead."""
