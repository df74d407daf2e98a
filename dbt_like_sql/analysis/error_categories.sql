-- description: Command errors and check failures by version, category and layer.
-- materialized: table
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column extractor_version: Version of the extractor; counts of two versions do not compare.
-- column signal: command_error or check_failure.
-- column category: Kind of failure, such as path_not_found; null if none is told.
-- column layer: Layer that the failure is attributed to.
-- column n_events: Failures.
-- column n_hidden: Failures that do not show in the exit code.
-- column n_sessions_hit: Sessions with at least one, in the session itself or in a run of its sub-agents.
-- column n_sessions: All sessions of the version, without runs of sub-agents; null if there are only such runs.
SELECT
  e.agent,
  e.agent_release,
  e.model,
  e.extractor_version,
  e.signal,
  e.category,
  e.layer,
  e.n_events,
  e.n_hidden,
  e.n_sessions_hit,
  v.n_sessions
FROM (
  SELECT
    s.agent,
    s.agent_release,
    s.model,
    h.extractor_version,
    h.signal,
    h.category,
    h.layer,
    count(*) AS n_events,
    count(*) FILTER (h.is_hidden) AS n_hidden,
    count(DISTINCT CASE WHEN s.n_turns = 0 THEN coalesce(s.parent_session_id, s.session_id) ELSE s.session_id END) AS n_sessions_hit
  FROM signals.hard AS h
  INNER JOIN masked.sessions AS s
    ON s.session_id = h.session_id
  WHERE h.signal IN ('command_error', 'check_failure')
  GROUP BY ALL
) AS e
INNER JOIN (
  SELECT
    m.agent,
    m.agent_release,
    m.model,
    nullif(count(*) FILTER (m.parent_session_id IS NULL OR m.n_turns > 0), 0) AS n_sessions
  FROM masked.sessions AS m
  GROUP BY ALL
) AS v
  ON v.agent = e.agent
  AND v.agent_release IS NOT DISTINCT FROM e.agent_release
  AND v.model IS NOT DISTINCT FROM e.model
ORDER BY e.agent, e.agent_release NULLS FIRST, e.model NULLS FIRST, e.extractor_version, e.n_events DESC, e.signal, e.category, e.layer
