-- description: Cost by version and scenario, from the logs where they state it, else from the price table; not adjusted for traffic.
-- materialized: table
-- column measurement: Hash of extraction, outcomes and estimand; rows compare only if it is equal.
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column scenario: Scenario.
-- column n_sessions: Sessions.
-- column n_logged: Sessions whose log states a cost.
-- column n_priced: Sessions whose cost is tokens at the price table's prices.
-- column n_unavailable: Sessions whose cost is unknown; they are in no sum.
-- column cost_usd: Sum of the known costs; null where none is known.
-- column mean_cost_usd: Mean over the sessions whose cost is known.
-- column median_cost_usd: Their median.
-- column total_tokens: Tokens of all sessions that state any.
SELECT
  o.measurement,
  o.agent,
  o.agent_release,
  o.model,
  o.scenario,
  count(*) AS n_sessions,
  count(*) FILTER (o.cost_source = 'logged') AS n_logged,
  count(*) FILTER (o.cost_source = 'priced') AS n_priced,
  count(*) FILTER (o.cost_source IS NULL) AS n_unavailable,
  sum(o.cost_usd) AS cost_usd,
  avg(o.cost_usd) AS mean_cost_usd,
  median(o.cost_usd) AS median_cost_usd,
  CAST(sum(o.total_tokens) AS BIGINT) AS total_tokens
FROM signals.session_outcomes AS o
GROUP BY o.measurement, o.agent, o.agent_release, o.model, o.scenario
ORDER BY o.measurement, o.agent, o.agent_release NULLS FIRST, o.model NULLS FIRST, o.scenario
