-- description: The newest gate decision of each pair of versions, criterion and measurement; where two windows were asked on that day, a row for each.
-- materialized: view
-- column decided_on: As-of day of the analysis it was decided on.
-- column window_name: Window that it was decided on.
-- column decision_id: Digest of everything the decision was made from.
-- column measurement: Hash of extraction, outcomes and estimand.
-- column criteria_name: Criteria file.
-- column criteria_version: Its declared version.
-- column candidate: Version that may ship.
-- column baseline: Version it is compared with.
-- column criterion: Name of the criterion in the criteria file.
-- column metric: Metric.
-- column kind: non_inferiority or superiority.
-- column margin: Margin, in units of the metric.
-- column estimate: Candidate minus baseline, signed so that positive is better.
-- column lower_bound: One-sided 95 % lower bound; with decided_before it holds on all days of decision.
-- column upper_bound: One-sided 95 % upper bound; likewise.
-- column verdict: pass, fail or inconclusive.
-- column reasons: Reason codes of an open verdict; decided_before on any that another as-of day preceded.
SELECT
  g.decided_on,
  g.window_name,
  g.decision_id,
  g.measurement,
  g.criteria_name,
  g.criteria_version,
  g.candidate,
  g.baseline,
  g.criterion,
  g.metric,
  g.kind,
  g.margin,
  g.estimate,
  g.lower AS lower_bound,
  g.upper AS upper_bound,
  g.verdict,
  g.reasons
FROM analysis.gates AS g
QUALIFY g.decided_on = max(g.decided_on) OVER (PARTITION BY g.measurement, g.candidate, g.baseline, g.criterion)
ORDER BY g.decided_on DESC, g.candidate, g.baseline, g.criterion, g.window_name
