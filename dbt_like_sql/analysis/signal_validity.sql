-- description: How each signal goes with the outcome that the log itself states, by source, agent and model: how often it shows, success with and without it, their difference, and phi. It describes sessions and adjusts for nothing but the model; outcomes and signals are of the measurement and the extraction that are published.
-- materialized: table
-- column measurement: Hash of extraction, outcomes and estimand; only that of the published criteria.
-- column extractor_version: Version of the extraction.
-- column source: Reader.
-- column agent: Agent or harness.
-- column scope: agent: all models of the agent together; model: one of them.
-- column model: Model that answered most turns; null if not logged, and for scope agent.
-- column family: hard, semantic or derived.
-- column signal: Signal, where the agent's sessions show it at least once. Those that state the outcome itself are left out.
-- column n_objective: Settled sessions whose log states an outcome.
-- column n_sessions: Those of them in which the signal could show: a tool was called, a person spoke, or, for recovery and first_time_success, there was an episode or a claim to judge. All that follows is of them.
-- column n_with: Sessions with the signal, once or more; of a derived one, with a value above 0.
-- column share_with: Share of sessions with it.
-- column success_rate_with: Success of sessions with it; null without any.
-- column success_rate_without: Success of the others; null without any.
-- column difference: Success with it less success without; null where either side has fewer than 5 sessions.
-- column difference_within_model: The same between sessions of the same model, models weighted by what they tell of it; null likewise.
-- column phi: Correlation of signal and success, from -1 to 1; null likewise, and where success never varies.
-- column clustered_by: What sessions are not independent within: task of a task set, else user; session: none is logged and the interval is a plain one; mixed: not the same for all.
-- column n_clusters_with: Clusters that hold a session with it.
-- column n_clusters_without: Clusters that hold a session without.
-- column se: Standard error of the difference, robust to clusters (CR1); null where status is not ok.
-- column lo: Lower end of the 95 % interval of the difference: t with one degree of freedom less than the clusters of the smaller side. Not adjusted for the number of signals.
-- column hi: Upper end. Both stay within -1 and 1.
-- column status: ok; few_sessions: a side has fewer than 5; no_variation: success never varies; no_interval: a side has fewer than 5 clusters, or the same outcome throughout.
WITH judged AS (
  SELECT
    o.measurement,
    f.extractor_version,
    o.source,
    o.agent,
    o.model,
    o.session_id,
    o.objective_success_num AS success,
    o.n_human_turns > 0 AS is_spoken,
    o.n_tool_calls > 0 AS is_called,
    CASE WHEN o.task_id IS NOT NULL THEN 'task' WHEN o.user_id IS NOT NULL THEN 'user' ELSE 'session' END AS cluster_kind,
    -- The domains of one benchmark count their tasks from the beginning each; an inferred scenario is no domain. A task
    -- goes by one rule in all its rows (analysis/labels.py says the same).
    CASE
      WHEN o.task_id IS NULL THEN o.user_id
      WHEN
        bool_or(o.scenario_method IS NULL) OVER (PARTITION BY o.source, o.task_id)
        OR bool_and(coalesce(o.scenario_method, '') = 'declared') OVER (PARTITION BY o.source, o.task_id)
        THEN concat_ws('/', o.scenario, o.task_id)
      ELSE o.task_id
    END AS cluster_id
  FROM signals.session_outcomes AS o
  INNER JOIN signals.session_features AS f
    ON f.session_id = o.session_id
  WHERE o.is_settled AND o.objective_success_den > 0
    -- Signals do not name their extraction: the file holds those of the criteria that it was published under.
    AND o.measurement IN (SELECT c.measurement FROM meta.criteria AS c)
),

shown AS (
  SELECT 'hard' AS family, h.session_id, h.signal, TRUE AS is_with
  FROM signals.hard AS h
  WHERE h.signal NOT LIKE 'objective.%'
  GROUP BY h.session_id, h.signal
  UNION ALL
  SELECT 'semantic' AS family, m.session_id, m.signal, TRUE AS is_with
  FROM signals.semantic AS m
  GROUP BY m.session_id, m.signal
  UNION ALL
  SELECT 'derived' AS family, d.session_id, d.signal, max(d."value") > 0 AS is_with
  FROM signals.derived AS d
  GROUP BY d.session_id, d.signal
),

seen AS (
  SELECT DISTINCT j.measurement, j.source, j.agent, w.family, w.signal
  FROM judged AS j
  INNER JOIN shown AS w
    ON w.session_id = j.session_id
),

paired AS (
  SELECT
    j.measurement,
    j.extractor_version,
    j.source,
    j.agent,
    j.model,
    s.family,
    s.signal,
    j.cluster_kind,
    j.cluster_id,
    j.success,
    CAST(coalesce(w.is_with, FALSE) AS BIGINT) AS shows,
    -- Sessions that are clusters of their own differ in these two alone, and are kept as counts.
    CASE WHEN j.cluster_kind = 'session' THEN 2 * j.success + CAST(coalesce(w.is_with, FALSE) AS BIGINT) END AS alone
  FROM judged AS j
  INNER JOIN seen AS s
    ON s.measurement = j.measurement AND s.source = j.source AND s.agent = j.agent
  LEFT JOIN shown AS w
    ON w.session_id = j.session_id AND w.family = s.family AND w.signal = s.signal
  WHERE
    CASE
      WHEN s.signal IN ('recovery', 'first_time_success') THEN w.is_with IS NOT NULL
      WHEN s.family <> 'hard' THEN j.is_spoken
      WHEN s.signal LIKE 'explicit_feedback.%' OR s.signal IN ('interrupt', 'rollback') THEN TRUE
      ELSE j.is_called
    END
),

cells AS (
  SELECT
    p.measurement,
    p.extractor_version,
    p.source,
    p.agent,
    CASE WHEN grouping(p.model) = 0 THEN 'model' ELSE 'agent' END AS scope,
    p.model,
    p.family,
    p.signal,
    p.cluster_kind,
    p.cluster_id,
    CASE WHEN p.cluster_kind = 'session' THEN count(*) ELSE 1 END AS n_clusters,
    count(*) AS n,
    sum(p.shows) AS n1,
    sum(p.success) AS y,
    sum(p.success * p.shows) AS y1
  FROM paired AS p
  GROUP BY
    GROUPING SETS (
      (p.measurement, p.extractor_version, p.source, p.agent, p.family, p.signal, p.cluster_kind, p.cluster_id, p.alone),
      (
        p.measurement, p.extractor_version, p.source, p.agent, p.model, p.family, p.signal, p.cluster_kind, p.cluster_id,
        p.alone
      )
    )
),

totals AS (
  SELECT
    c.measurement,
    c.extractor_version,
    c.source,
    c.agent,
    c.scope,
    c.model,
    c.family,
    c.signal,
    CASE WHEN min(c.cluster_kind) = max(c.cluster_kind) THEN min(c.cluster_kind) ELSE 'mixed' END AS clustered_by,
    CAST(sum(c.n) AS DOUBLE) AS n,
    CAST(sum(c.n1) AS DOUBLE) AS n1,
    sum(c.y) AS y,
    CAST(sum(c.n_clusters) AS BIGINT) AS n_clusters,
    CAST(coalesce(sum(c.n_clusters) FILTER (c.n1 > 0), 0) AS BIGINT) AS n_clusters_with,
    CAST(coalesce(sum(c.n_clusters) FILTER (c.n1 < c.n), 0) AS BIGINT) AS n_clusters_without,
    sum(c.y1) / nullif(sum(c.n1), 0) AS p1,
    (sum(c.y) - sum(c.y1)) / nullif(sum(c.n) - sum(c.n1), 0) AS p0
  FROM cells AS c
  GROUP BY ALL
),

scores AS (
  -- What each cluster adds to the slope of success on the signal; its square is the clustered variance.
  SELECT
    t.measurement,
    t.extractor_version,
    t.source,
    t.agent,
    t.scope,
    t.model,
    t.family,
    t.signal,
    sum(
      power(
        (1 - t.n1 / t.n) * (c.y1 - c.n1 * coalesce(t.p1, 0))
        - t.n1 / t.n * (c.y - c.y1 - (c.n - c.n1) * coalesce(t.p0, 0)),
        2
      ) / c.n_clusters
    ) AS squares
  FROM totals AS t
  INNER JOIN cells AS c
    ON c.measurement = t.measurement AND c.extractor_version = t.extractor_version AND c.source = t.source
    AND c.agent = t.agent AND c.scope = t.scope AND c.model IS NOT DISTINCT FROM t.model AND c.family = t.family
    AND c.signal = t.signal
  GROUP BY ALL
),

within AS (
  SELECT
    t.measurement,
    t.extractor_version,
    t.source,
    t.agent,
    t.signal,
    sum(t.n1 * (t.n - t.n1) / t.n * (t.p1 - t.p0)) / nullif(sum(t.n1 * (t.n - t.n1) / t.n), 0) AS difference
  FROM totals AS t
  WHERE t.scope = 'model' AND t.n1 > 0 AND t.n1 < t.n
  GROUP BY ALL
),

objective AS (
  SELECT
    j.measurement,
    j.extractor_version,
    j.source,
    j.agent,
    CASE WHEN grouping(j.model) = 0 THEN 'model' ELSE 'agent' END AS scope,
    j.model,
    count(*) AS n
  FROM judged AS j
  GROUP BY
    GROUPING SETS (
      (j.measurement, j.extractor_version, j.source, j.agent),
      (j.measurement, j.extractor_version, j.source, j.agent, j.model)
    )
),

told AS (
  SELECT
    t.*,
    b.n AS n_objective,
    t.n1 * (t.n - t.n1) / t.n AS spread,
    sqrt(
      s.squares * t.n_clusters / nullif(t.n_clusters - 1, 0) * (t.n - 1) / nullif(t.n - 2, 0)
    ) AS root,
    CASE WHEN t.scope = 'model' THEN t.p1 - t.p0 ELSE w.difference END AS within_model,
    least(t.n_clusters_with, t.n_clusters_without) - 1 AS df,
    CASE
      WHEN least(t.n1, t.n - t.n1) < 5 THEN 'few_sessions'
      WHEN t.y = 0 OR t.y = t.n THEN 'no_variation'
      WHEN least(t.n_clusters_with, t.n_clusters_without) < 5 OR t.p1 IN (0, 1) OR t.p0 IN (0, 1) THEN 'no_interval'
      ELSE 'ok'
    END AS status
  FROM totals AS t
  INNER JOIN scores AS s
    ON s.measurement = t.measurement AND s.extractor_version = t.extractor_version AND s.source = t.source
    AND s.agent = t.agent AND s.scope = t.scope AND s.model IS NOT DISTINCT FROM t.model AND s.signal = t.signal
  INNER JOIN objective AS b
    ON b.measurement = t.measurement AND b.extractor_version = t.extractor_version AND b.source = t.source
    AND b.agent = t.agent AND b.scope = t.scope AND b.model IS NOT DISTINCT FROM t.model
  LEFT JOIN within AS w
    ON w.measurement = t.measurement AND w.extractor_version = t.extractor_version AND w.source = t.source
    AND w.agent = t.agent AND w.signal = t.signal
),

bounded AS (
  SELECT
    o.*,
    CASE WHEN o.status <> 'few_sessions' THEN o.p1 - o.p0 END AS difference,
    CASE WHEN o.status = 'ok' THEN o.root / o.spread END AS se,
    -- The t quantile of 0.975 by the expansion of Cornish and Fisher about 1.959964: 0.3 % short at 4 degrees.
    1.959964 + 2.372271 / o.df + 2.822498 / power(o.df, 2) + 2.555850 / power(o.df, 3) AS quantile
  FROM told AS o
)

SELECT
  r.measurement,
  r.extractor_version,
  r.source,
  r.agent,
  r.scope,
  r.model,
  r.family,
  r.signal,
  r.n_objective,
  CAST(r.n AS BIGINT) AS n_sessions,
  CAST(r.n1 AS BIGINT) AS n_with,
  round(r.n1 / r.n, 12) AS share_with,
  round(r.p1, 12) AS success_rate_with,
  round(r.p0, 12) AS success_rate_without,
  round(r.difference, 12) AS difference,
  CASE WHEN r.status <> 'few_sessions' THEN round(r.within_model, 12) END AS difference_within_model,
  round(r.difference * sqrt(r.spread / nullif(r.y * (1 - r.y / r.n), 0)), 12) AS phi,
  r.clustered_by,
  r.n_clusters_with,
  r.n_clusters_without,
  round(r.se, 12) AS se,
  CASE WHEN r.status = 'ok' THEN round(greatest(r.difference - r.quantile * r.se, -1), 12) END AS lo,
  CASE WHEN r.status = 'ok' THEN round(least(r.difference + r.quantile * r.se, 1), 12) END AS hi,
  r.status
FROM bounded AS r
ORDER BY r.measurement, r.source, r.agent, r.scope, r.model NULLS FIRST, r.family, r.signal, r.extractor_version
