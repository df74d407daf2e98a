-- description: The headline estimate of each version beside what other estimators say, in the newest analysis of each measurement.
-- materialized: view
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window of the newest analysis.
-- column measurement: Hash of extraction, outcomes and estimand.
-- column metric: Metric.
-- column version: Agent version.
-- column estimator: Estimator; none of them ranks or decides.
-- column reference: What its number is measured against: numbers of other references are not comparable.
-- column estimate: What it says.
-- column lo: Lower end of its interval, where it has one.
-- column hi: Upper end.
-- column net_improvement: What the default estimator says.
-- column is_other_sign: Whether the two have opposite signs; null where they are measured against different references, or either has no number.
-- column status: ok, suspect, inconclusive or unavailable.
SELECT
  e.as_of,
  e.window_name,
  e.measurement,
  e.metric,
  e.version,
  e.estimator,
  e.reference,
  e.estimate,
  e.lo,
  e.hi,
  n.estimate AS net_improvement,
  CASE WHEN e.reference = n.reference THEN sign(e.estimate) * sign(n.estimate) < 0 END AS is_other_sign,
  e.status
FROM analysis.estimators AS e
INNER JOIN analysis.newest_analysis AS w
  ON w.measurement = e.measurement AND w.as_of = e.as_of AND w.window_name = e.window_name
INNER JOIN analysis.net_improvement AS n
  ON n.as_of = e.as_of AND n.window_name = e.window_name AND n.measurement = e.measurement
  AND n.metric = e.metric AND n.version = e.version AND n.slice = 'all'
ORDER BY e.measurement, e.metric, e.version, e.estimator
