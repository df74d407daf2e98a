-- description: Sessions, users, turns, calls, tokens and logged cost a day, by source and version.
-- materialized: table
-- column day: UTC day of the session's start.
-- column source: Reader.
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column n_sessions: Sessions, without runs of sub-agents that were exported apart.
-- column n_sub_agent_runs: Such runs; their turns, calls, tokens and cost are in the other columns.
-- column n_users: Distinct users among the sessions that name one.
-- column n_sessions_without_user: Sessions that name no user.
-- column n_sessions_undated: Sessions whose day was assigned, because the log has no date.
-- column n_human_turns: Turns of a person.
-- column n_tool_calls: Tool calls.
-- column input_tokens: Uncached input tokens; null if no session logs them.
-- column output_tokens: Output tokens; likewise.
-- column cache_read_tokens: Input tokens read from a cache; likewise.
-- column logged_cost_usd: Cost that the logs state; null if none does.
-- column n_sessions_with_cost: Sessions that state a cost.
SELECT
  CAST(s.started_at AT TIME ZONE 'UTC' AS DATE) AS day,
  s.source,
  s.agent,
  s.agent_release,
  s.model,
  count(*) FILTER (s.parent_session_id IS NULL OR s.n_turns > 0) AS n_sessions,
  count(*) FILTER (s.parent_session_id IS NOT NULL AND s.n_turns = 0) AS n_sub_agent_runs,
  count(DISTINCT s.user_id) AS n_users,
  count(*) FILTER (s.user_id IS NULL) AS n_sessions_without_user,
  count(*) FILTER (NOT s.is_dated) AS n_sessions_undated,
  CAST(sum(s.n_turns) AS BIGINT) AS n_human_turns,
  CAST(sum(s.n_tool_calls) AS BIGINT) AS n_tool_calls,
  CAST(sum(s.input_tokens) AS BIGINT) AS input_tokens,
  CAST(sum(s.output_tokens) AS BIGINT) AS output_tokens,
  CAST(sum(s.cache_read_tokens) AS BIGINT) AS cache_read_tokens,
  sum(s.logged_cost_usd) AS logged_cost_usd,
  count(s.logged_cost_usd) AS n_sessions_with_cost
FROM masked.sessions AS s
GROUP BY ALL
ORDER BY day, s.source, s.agent, s.agent_release NULLS FIRST, s.model NULLS FIRST
