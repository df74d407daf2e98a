-- description: Objective success by version and scenario, as the logs state it: plain shares, not adjusted for traffic.
-- materialized: table
-- column measurement: Hash of extraction, outcomes and estimand; rows compare only if it is equal.
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column scenario: Scenario.
-- column n_sessions: Sessions.
-- column n_stated: Sessions whose log states an outcome.
-- column n_success: Sessions whose log states success.
-- column success_rate: Share of success among the stated; null where none is stated.
-- column n_users: Distinct users among the sessions that name one.
-- column n_tasks: Distinct tasks of a controlled task set.
-- column is_settled: Whether all days of the group are closed.
SELECT
  o.measurement,
  o.agent,
  o.agent_release,
  o.model,
  o.scenario,
  count(*) AS n_sessions,
  count(*) FILTER (o.objective_success_den > 0) AS n_stated,
  count(*) FILTER (o.objective_success_den > 0 AND o.objective_success_num > 0) AS n_success,
  n_success / nullif(n_stated, 0) AS success_rate,
  count(DISTINCT o.user_id) AS n_users,
  -- Sources name their tasks each for itself; inside one a scenario holds one domain.
  count(DISTINCT (o.source, o.task_id)) FILTER (o.task_id IS NOT NULL) AS n_tasks,
  bool_and(o.is_settled) AS is_settled
FROM signals.session_outcomes AS o
GROUP BY o.measurement, o.agent, o.agent_release, o.model, o.scenario
ORDER BY o.measurement, o.agent, o.agent_release NULLS FIRST, o.model NULLS FIRST, o.scenario
