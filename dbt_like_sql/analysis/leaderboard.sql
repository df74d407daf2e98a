-- description: The headline metric by version in the newest analysis of each measurement: one as-of day and one window, leaders first.
-- materialized: table
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window of the newest analysis: a number of days such as 28d, or all; net_improvement has every window.
-- column window_start: First day in the window.
-- column window_end: Last day in the window.
-- column measurement: Hash of extraction, outcomes and estimand; rows compare only if it is equal.
-- column criteria_name: Criteria file.
-- column criteria_version: Its declared version.
-- column metric: The headline metric.
-- column version: Agent version.
-- column rank_lo: Best rank in the confidence set; 1 means that it may be the best.
-- column rank_hi: Worst rank; 1 means that it is the best beyond doubt.
-- column letters: Versions that share a letter cannot be told apart.
-- column estimate: Net improvement, as a difference of means; null if unavailable.
-- column lo: Lower end of the 95 % interval for this version alone.
-- column hi: Upper end.
-- column lo_sim: Lower end of the interval that holds for all versions at once.
-- column hi_sim: Upper end.
-- column p_adj: Step-down adjusted p-value over versions.
-- column theta: Mean outcome if all of the window's traffic were served by this version.
-- column theta_lo: Lower end of its interval.
-- column theta_hi: Upper end.
-- column n_sessions: Sessions of the version.
-- column n_users: Users among them.
-- column status: ok, suspect, inconclusive or unavailable.
-- column reasons: Reason codes behind the status.
SELECT
  r.as_of,
  r.window_name,
  r.window_start,
  r.window_end,
  r.measurement,
  r.criteria_name,
  r.criteria_version,
  r.metric,
  r.version,
  r.rank_lo,
  r.rank_hi,
  r.letters,
  r.estimate,
  r.lo,
  r.hi,
  r.lo_sim,
  r.hi_sim,
  r.p_adj,
  r.theta,
  r.theta_lo,
  r.theta_hi,
  r.n_sessions,
  r.n_users,
  r.status,
  r.reasons
FROM analysis.newest_results AS r
INNER JOIN analysis.headline_metrics AS h
  ON h.measurement = r.measurement AND h.metric = r.metric
WHERE r.slice = 'all'
ORDER BY r.measurement, r.rank_lo NULLS LAST, r.rank_hi, r.version
