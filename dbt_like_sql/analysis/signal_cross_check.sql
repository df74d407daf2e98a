-- description: Whether what people say and how sessions went agree, by version: objections in words against traces in the work. A version whose signals disagree more than others' is read with care: a detector may miss there, or people may object less.
-- materialized: table
-- column measurement: Hash of extraction, outcomes and estimand; only that of the published criteria.
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column n_sessions: Sessions in which a person spoke and an agent left steps.
-- column n_both: Sessions with an objection in words, and a trace in the work: a loop, a rollback, a refused call, an interrupt, a check left failing, or an abandoned end.
-- column n_words_only: Sessions with an objection in words alone.
-- column n_work_only: Sessions with a trace in the work alone.
-- column n_neither: Sessions with neither.
-- column agreement: Share of sessions in which both say the same.
-- column phi: Correlation of the two, from -1 to 1; null where one of them never varies.
-- column n_confirmed: Sessions whose last word on it is a confirmation.
-- column n_confirmed_failing: Of these, sessions that leave a check failing: a confirmation that the work contradicts.
WITH seen AS (
  SELECT
    o.measurement,
    o.agent,
    o.agent_release,
    o.model,
    o.correction_num > 0 OR o.complaint_num > 0 AS in_words,
    p.n_loops + p.n_rollbacks + p.n_refused_calls + p.n_interrupts + p.n_checks_failing_at_end > 0
    OR o.end_status = 'abandoned' AS in_work,
    o.confirmation_num > 0 AS is_confirmed,
    p.n_checks_failing_at_end > 0 AS is_failing
  FROM signals.session_outcomes AS o
  INNER JOIN signals.process AS p
    ON p.session_id = o.session_id
  WHERE o.is_settled AND o.correction_den > 0 AND o.complaint_den > 0 AND p.n_steps IS NOT NULL
    -- Process rows are of one extraction: that of the criteria that the file was published under.
    AND o.measurement IN (SELECT c.measurement FROM meta.criteria AS c)
)

SELECT
  s.measurement,
  s.agent,
  s.agent_release,
  s.model,
  count(*) AS n_sessions,
  count(*) FILTER (s.in_words AND s.in_work) AS n_both,
  count(*) FILTER (s.in_words AND NOT s.in_work) AS n_words_only,
  count(*) FILTER (NOT s.in_words AND s.in_work) AS n_work_only,
  count(*) FILTER (NOT s.in_words AND NOT s.in_work) AS n_neither,
  (n_both + n_neither) / count(*) AS agreement,
  round(
    (n_both * n_neither - n_words_only * n_work_only)
    / nullif(
      sqrt(
        CAST(n_both + n_words_only AS DOUBLE) * (n_work_only + n_neither) * (n_both + n_work_only)
        * (n_words_only + n_neither)
      ),
      0
    ),
    12
  ) AS phi,
  count(*) FILTER (s.is_confirmed) AS n_confirmed,
  count(*) FILTER (s.is_confirmed AND s.is_failing) AS n_confirmed_failing
FROM seen AS s
GROUP BY s.measurement, s.agent, s.agent_release, s.model
ORDER BY s.measurement, s.agent, s.agent_release NULLS FIRST, s.model NULLS FIRST
