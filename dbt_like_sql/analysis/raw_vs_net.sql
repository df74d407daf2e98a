-- description: The plain rank of each version beside the ranks that its net improvement leaves open, in the newest analysis of each measurement.
-- materialized: view
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window of the newest analysis.
-- column measurement: Hash of extraction, outcomes and estimand; rows compare only if it is equal.
-- column metric: Metric.
-- column slice: 'all', or scenario=NAME.
-- column version: Agent version.
-- column raw_rate: Plain mean over the version's own sessions, whatever its share of hard work.
-- column raw_rank: Rank of the plain mean.
-- column theta: Mean outcome on the traffic that all versions share.
-- column estimate: Net improvement.
-- column net_rank_lo: Best rank in the confidence set of the net improvement.
-- column net_rank_hi: Worst rank.
-- column is_raw_rank_supported: Whether the plain rank lies in that set; null where either is unavailable.
-- column n_sessions: Sessions of the version in the slice.
SELECT
  r.as_of,
  r.window_name,
  r.measurement,
  r.metric,
  r.slice,
  r.version,
  r.raw_rate,
  r.raw_rank,
  r.theta,
  r.estimate,
  r.rank_lo AS net_rank_lo,
  r.rank_hi AS net_rank_hi,
  r.raw_rank BETWEEN r.rank_lo AND r.rank_hi AS is_raw_rank_supported,
  r.n_sessions
FROM analysis.newest_results AS r
ORDER BY r.measurement, r.metric, r.slice, r.raw_rank NULLS LAST, r.version
