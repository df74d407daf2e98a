-- description: How long corrections took, by version: episodes by their end, and the mean of 1/k between its two bounds, session by session. Not adjusted for traffic.
-- materialized: table
-- column definition_version: Version of what an episode is; rows compare only if it is equal.
-- column agent: Agent or harness.
-- column agent_release: Release of the agent; null if not logged.
-- column model: Model that answered most turns; null if not logged.
-- column n_sessions: Sessions with a correction.
-- column n_episodes: Correction episodes.
-- column n_strong: Episodes that ended in a confirmation or praise.
-- column n_weak: Episodes that ended because the user objected no more.
-- column n_rejected: Episodes that ended in an objection.
-- column n_censored: Episodes whose last response nobody judged.
-- column censored_share: Share of censored episodes.
-- column within_1: Share of episodes recovered by the first response, none of the censored among them.
-- column within_2: The same by the second.
-- column within_3: The same by the third.
-- column score_low: Mean over sessions of their episodes' mean of 1/k, if no censored episode recovered.
-- column score_high: The same if each was right with the response that nobody judged.
WITH by_session AS (
  SELECT
    d.session_id,
    d.definition_version,
    count(*) AS n_episodes,
    count(*) FILTER (d.ending = 'strong') AS n_strong,
    count(*) FILTER (d.ending = 'weak') AS n_weak,
    count(*) FILTER (d.ending = 'rejected') AS n_rejected,
    count(*) FILTER (d.ending = 'censored') AS n_censored,
    count(*) FILTER (d.k <= 1) AS n_within_1,
    count(*) FILTER (d.k <= 2) AS n_within_2,
    count(*) FILTER (d.k <= 3) AS n_within_3,
    avg(d."value") AS low,
    avg(d.value_high) AS high
  FROM signals.derived AS d
  WHERE d.signal = 'recovery'
  GROUP BY d.session_id, d.definition_version
)

SELECT
  b.definition_version,
  s.agent,
  s.agent_release,
  s.model,
  count(*) AS n_sessions,
  CAST(sum(b.n_episodes) AS BIGINT) AS n_episodes,
  CAST(sum(b.n_strong) AS BIGINT) AS n_strong,
  CAST(sum(b.n_weak) AS BIGINT) AS n_weak,
  CAST(sum(b.n_rejected) AS BIGINT) AS n_rejected,
  CAST(sum(b.n_censored) AS BIGINT) AS n_censored,
  sum(b.n_censored) / sum(b.n_episodes) AS censored_share,
  sum(b.n_within_1) / sum(b.n_episodes) AS within_1,
  sum(b.n_within_2) / sum(b.n_episodes) AS within_2,
  sum(b.n_within_3) / sum(b.n_episodes) AS within_3,
  round(avg(b.low), 12) AS score_low,
  round(avg(b.high), 12) AS score_high
FROM by_session AS b
INNER JOIN masked.sessions AS s
  ON s.session_id = b.session_id
GROUP BY b.definition_version, s.agent, s.agent_release, s.model
ORDER BY b.definition_version, s.agent, s.agent_release NULLS FIRST, s.model NULLS FIRST
