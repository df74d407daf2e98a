-- description: What happened in sessions a day, by version: turns, calls, errors, and what users did and said.
-- materialized: table
-- column day: UTC day of the session's start.
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column extractor_version: Version of the extraction; counts of two extractions do not compare.
-- column n_sessions: Sessions; runs of sub-agents that were exported apart are none, but their calls and errors count.
-- column n_human_turns: Turns of a person.
-- column n_tool_calls: Tool calls.
-- column n_command_calls: Tool calls that ran a command or gave a status.
-- column n_command_errors: Calls that failed themselves.
-- column n_check_failures: Tests, linters and builds that reported findings.
-- column n_interrupts: Times a user stopped the agent.
-- column n_refused_calls: Tool calls that a user refused.
-- column n_confirmations: Explicit confirmations.
-- column n_praise: Praise.
-- column n_complaints: Complaints.
-- column n_corrections: Corrections.
-- column n_self_repairs: Errors whose command later succeeded without the user.
-- column n_sessions_with_error: Sessions with at least one command error.
-- column n_sessions_with_correction: Sessions with at least one correction.
-- column n_sessions_interrupted: Sessions that a user stopped at least once.
SELECT
  CAST(s.started_at AT TIME ZONE 'UTC' AS DATE) AS day,
  s.agent,
  s.agent_release,
  s.model,
  f.extractor_version,
  count(*) FILTER (s.parent_session_id IS NULL OR s.n_turns > 0) AS n_sessions,
  CAST(sum(f.n_human_turns) AS BIGINT) AS n_human_turns,
  CAST(sum(f.n_tool_calls) AS BIGINT) AS n_tool_calls,
  CAST(sum(f.n_command_calls) AS BIGINT) AS n_command_calls,
  CAST(sum(f.n_command_errors) AS BIGINT) AS n_command_errors,
  CAST(sum(f.n_check_failures) AS BIGINT) AS n_check_failures,
  CAST(sum(f.n_interrupts) AS BIGINT) AS n_interrupts,
  CAST(sum(f.n_refused_calls) AS BIGINT) AS n_refused_calls,
  CAST(sum(f.n_confirmations) AS BIGINT) AS n_confirmations,
  CAST(sum(f.n_praise) AS BIGINT) AS n_praise,
  CAST(sum(f.n_complaints) AS BIGINT) AS n_complaints,
  CAST(sum(f.n_corrections) AS BIGINT) AS n_corrections,
  CAST(sum(f.n_self_repairs) AS BIGINT) AS n_self_repairs,
  count(*) FILTER (f.n_command_errors > 0) AS n_sessions_with_error,
  count(*) FILTER (f.n_corrections > 0) AS n_sessions_with_correction,
  count(*) FILTER (f.n_interrupts > 0) AS n_sessions_interrupted
FROM masked.sessions AS s
INNER JOIN signals.session_features AS f
  ON f.session_id = s.session_id
GROUP BY ALL
ORDER BY day, s.agent, s.agent_release NULLS FIRST, s.model NULLS FIRST, f.extractor_version
