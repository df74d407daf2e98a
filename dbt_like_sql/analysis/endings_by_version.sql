-- description: How sessions ended, by version. The abandonment rate stands beside the share of sessions of which it is not known, and its two bounds: none of those was abandoned, or all were. Not adjusted for traffic.
-- materialized: table
-- column measurement: Hash of extraction, outcomes and estimand; rows compare only if it is equal.
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column n_sessions: Sessions of days that are closed.
-- column n_unsettled: Sessions of later days, which count nowhere else here.
-- column n_completed: Sessions that ended, as far as anyone can tell, well.
-- column n_abandoned: Sessions whose last task is unresolved and that nobody went on with.
-- column n_interrupted: Sessions that were stopped, or that the user went on with elsewhere.
-- column n_failed: Sessions that ended on an error or a timeout.
-- column n_censored: Sessions cut off: unresolved, and who the user is, or what happened after, is not known.
-- column censored_share: Share of censored sessions.
-- column abandonment_rate: Share of abandoned sessions among those that are not censored.
-- column abandonment_low: The share if no censored session was abandoned.
-- column abandonment_high: The share if all were.
SELECT
  o.measurement,
  o.agent,
  o.agent_release,
  o.model,
  count(*) FILTER (o.is_settled) AS n_sessions,
  count(*) FILTER (NOT o.is_settled) AS n_unsettled,
  count(*) FILTER (o.is_settled AND o.end_status = 'completed') AS n_completed,
  count(*) FILTER (o.is_settled AND o.end_status = 'abandoned') AS n_abandoned,
  count(*) FILTER (o.is_settled AND o.end_status = 'interrupted') AS n_interrupted,
  count(*) FILTER (o.is_settled AND o.end_status IN ('error', 'timeout')) AS n_failed,
  count(*) FILTER (o.is_settled AND o.end_status = 'open') AS n_censored,
  n_censored / nullif(n_sessions, 0) AS censored_share,
  n_abandoned / nullif(n_sessions - n_censored, 0) AS abandonment_rate,
  n_abandoned / nullif(n_sessions, 0) AS abandonment_low,
  (n_abandoned + n_censored) / nullif(n_sessions, 0) AS abandonment_high
FROM signals.session_outcomes AS o
GROUP BY o.measurement, o.agent, o.agent_release, o.model
ORDER BY o.measurement, o.agent, o.agent_release NULLS FIRST, o.model NULLS FIRST
