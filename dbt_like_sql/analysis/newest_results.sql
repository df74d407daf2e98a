-- description: Net improvement in the newest analysis of each measurement: one as-of day and one window, every metric and slice.
-- materialized: view
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window of the newest analysis: a number of days such as 28d, or all; net_improvement has every window.
-- column window_start: First day in the window.
-- column window_end: Last day in the window.
-- column measurement: Hash of extraction, outcomes and estimand; rows compare only if it is equal.
-- column criteria_name: Criteria file.
-- column criteria_version: Its declared version.
-- column metric: Metric.
-- column slice: 'all', or scenario=NAME.
-- column version: Agent version.
-- column reference: What the shift is measured against.
-- column design: Assignment design that was used.
-- column estimate: Net improvement, as a difference of means; null if unavailable.
-- column lo: Lower end of the 95 % interval for this version alone.
-- column hi: Upper end.
-- column lo_sim: Lower end of the interval that holds for all versions at once.
-- column hi_sim: Upper end.
-- column p_adj: Step-down adjusted p-value over versions.
-- column rank_lo: Best rank in the confidence set.
-- column rank_hi: Worst rank.
-- column letters: Versions that share a letter cannot be told apart.
-- column theta: Mean outcome if all of the window's traffic were served by this version.
-- column theta_lo: Lower end of its interval.
-- column theta_hi: Upper end.
-- column raw_rate: Plain mean over the version's own sessions; descriptive.
-- column raw_rank: Rank of the plain mean; descriptive.
-- column n_sessions: Sessions of the version in the slice.
-- column n_users: Users among them.
-- column status: ok, suspect, inconclusive or unavailable.
-- column reasons: Reason codes behind the status.
SELECT
  n.as_of,
  n.window_name,
  n.window_start,
  n.window_end,
  n.measurement,
  n.criteria_name,
  n.criteria_version,
  n.metric,
  n.slice,
  n.version,
  n.reference,
  n.design,
  n.estimate,
  n.lo,
  n.hi,
  n.lo_sim,
  n.hi_sim,
  n.p_adj,
  n.rank_lo,
  n.rank_hi,
  n.letters,
  n.theta,
  n.theta_lo,
  n.theta_hi,
  n.raw_rate,
  n.raw_rank,
  n.n_sessions,
  n.n_users,
  n.status,
  n.reasons
FROM analysis.net_improvement AS n
INNER JOIN analysis.newest_analysis AS w
  ON w.measurement = n.measurement AND w.as_of = n.as_of AND w.window_name = n.window_name
