-- description: How sessions went, by version: work, errors, repairs, tokens and waiting. Means and medians are over sessions that know the number; not adjusted for traffic.
-- materialized: table
-- column extractor_version: Version of the extraction; rows compare only if it is equal.
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column n_sessions: Sessions.
-- column n_with_steps: Sessions whose log has steps; all that follows is of them.
-- column mean_steps: Steps a session.
-- column mean_turns: Turns of a person a session.
-- column mean_tool_calls: Tool calls a session.
-- column error_rate: Failed calls among those that gave a status.
-- column self_fixed_share: Errors that the agent repaired without the user.
-- column mean_retries: Runs of a failed call without a change between, a session.
-- column mean_loops: Calls that failed in the same way three times, a session.
-- column mean_fix_cycles: Runs of a failed call after an edit, a session.
-- column mean_rollbacks: Times that work was undone, a session.
-- column failing_at_end_share: Sessions that leave a check failing.
-- column hallucinated_per_1000_calls: Calls of tools or parameters that do not exist, of a thousand.
-- column n_with_tokens: Sessions whose tokens are known.
-- column mean_output_tokens: Output tokens a session.
-- column n_with_reasoning: Sessions whose reasoning is told apart.
-- column reasoning_share: Reasoning among their output tokens.
-- column n_with_times: Sessions whose first wait is known.
-- column median_first_response_ms: Time to the first sign of the agent.
-- column n_accepted: Sessions in which a person confirmed or praised.
-- column median_turns_to_acceptance: Turns before that.
SELECT
  p.extractor_version,
  s.agent,
  s.agent_release,
  s.model,
  count(*) AS n_sessions,
  count(p.n_steps) AS n_with_steps,
  avg(p.n_steps) AS mean_steps,
  avg(p.n_turns) AS mean_turns,
  avg(p.n_tool_calls) AS mean_tool_calls,
  sum(p.n_command_errors) / nullif(sum(p.n_command_calls), 0) AS error_rate,
  sum(p.n_self_fixed) / nullif(sum(p.n_command_errors), 0) AS self_fixed_share,
  avg(p.n_retries) AS mean_retries,
  avg(p.n_loops) AS mean_loops,
  avg(p.n_fix_cycles) AS mean_fix_cycles,
  avg(p.n_rollbacks) AS mean_rollbacks,
  count(*) FILTER (p.n_checks_failing_at_end > 0) / nullif(count(p.n_steps), 0) AS failing_at_end_share,
  1000 * sum(p.n_hallucinated_calls) / nullif(sum(p.n_tool_calls), 0) AS hallucinated_per_1000_calls,
  count(p.total_tokens) AS n_with_tokens,
  avg(p.output_tokens) AS mean_output_tokens,
  count(p.reasoning_tokens) AS n_with_reasoning,
  sum(p.reasoning_tokens) / nullif(sum(p.output_tokens) FILTER (p.reasoning_tokens IS NOT NULL), 0) AS reasoning_share,
  count(p.first_response_ms) AS n_with_times,
  median(p.first_response_ms) AS median_first_response_ms,
  count(p.turns_to_acceptance) AS n_accepted,
  median(p.turns_to_acceptance) AS median_turns_to_acceptance
FROM signals.process AS p
INNER JOIN masked.sessions AS s
  ON s.session_id = p.session_id
WHERE s.parent_session_id IS NULL OR s.n_turns > 0
GROUP BY p.extractor_version, s.agent, s.agent_release, s.model
ORDER BY p.extractor_version, s.agent, s.agent_release NULLS FIRST, s.model NULLS FIRST
