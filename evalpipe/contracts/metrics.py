"""Metrics: one (numerator, denominator) pair a session each, under one causal frame.

Belongs here: what each metric counts. Does not belong here: how it is estimated (``inference``) or
which one leads (criteria). A ``conditional`` metric has a denominator that the agent version itself
changes; it is shown only beside its unconditional partner (Frangakis and Rubin, 2002).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: Column stem; ``<name>_num`` and ``<name>_den`` are the pair.
        title: What a report calls it.
        numerator, denominator: What is counted, in words.
        is_higher_better: Direction.
        is_rate: Whether the mean lies in [0, 1] and is shown in percentage points.
        conditional_on: What the denominator depends on; empty for unconditional metrics.
        partner: Unconditional metric that a conditional one is shown beside.
        low: Lowest legal numerator.
    """

    name: str
    title: str
    numerator: str
    denominator: str
    is_higher_better: bool = True
    is_rate: bool = True
    conditional_on: str = ""
    partner: str = ""
    low: float = 0.0


METRICS: tuple[Metric, ...] = (
    Metric("positive_outcome", "Positive outcome", "1 if the log states success, else if the signal score passes the threshold and a positive signal exists", "1 if the log states an outcome, or a person spoke and no benchmark run broke"),
    Metric("confirmation", "Confirmation rate", "1 if an explicit confirmation meets no later complaint or correction", "1"),
    Metric("correction", "Correction rate", "1 if the user corrected the agent", "1", is_higher_better=False),
    Metric("complaint", "Complaint rate", "1 if the user complained", "1", is_higher_better=False),
    Metric("abandonment", "Abandonment rate", "1 if the session was abandoned", "1 unless censored", is_higher_better=False),
    Metric("right_first_time", "Right first time", "1 if confirmed without correction, complaint or error", "1"),
    Metric("unrecovered_correction", "Unrecovered corrections", "1 if a correction was not followed by a recovery", "1", is_higher_better=False),
    Metric("execution_errors", "Execution errors per session", "failed calls", "1", is_higher_better=False, is_rate=False),
    Metric("execution_success", "Error-free call share", "calls that did not fail", "calls that gave a status", conditional_on="calls", partner="execution_errors"),
    Metric("first_try_success", "First-try success", "distinct commands whose first run succeeded", "distinct commands", conditional_on="commands", partner="execution_errors"),
    Metric("self_repair", "Self-repair share", "errors repaired without the user", "errors", conditional_on="errors", partner="execution_errors"),
    Metric("steerability", "Steerability", "sum over correction episodes of 1/k", "correction episodes", conditional_on="corrections", partner="unrecovered_correction"),
    Metric("convergence", "Convergence efficiency", "max(0, 1 - (turns to confirmation - 1)/30) if confirmed, else 0", "1"),
    Metric("objective_success", "Objective success", "1 if the log states success", "1 if the log states an outcome"),
)  # fmt: skip

BY_NAME = {metric.name: metric for metric in METRICS}
