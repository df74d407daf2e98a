-- description: Versions that lost within the window, in the newest analysis of each measurement. Each window begins anew with a baseline of its first days, so alarms of successive days are not alarms of one watch.
-- materialized: view
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window of the newest analysis.
-- column measurement: Hash of extraction, outcomes and estimand.
-- column metric: Metric.
-- column version: Agent version.
-- column first_night: First period of this window at which the evidence reached the alarm.
-- column strongest: Largest evidence within this window; an alarm at 500.
-- column so_far: Net improvement over the whole window.
-- column so_far_lo: Lower end of an interval that holds at all nights of this window at once.
-- column so_far_hi: Upper end.
SELECT
  n.as_of,
  n.window_name,
  n.measurement,
  n.metric,
  n.version,
  min(n.night) FILTER (WHERE n.is_alarm) AS first_night,
  max(n.evidence) AS strongest,
  arg_max(n.so_far, n.night) AS so_far,
  arg_max(n.so_far_lo, n.night) AS so_far_lo,
  arg_max(n.so_far_hi, n.night) AS so_far_hi
FROM analysis.nights AS n
INNER JOIN analysis.newest_analysis AS w
  ON w.measurement = n.measurement AND w.as_of = n.as_of AND w.window_name = n.window_name
GROUP BY ALL
HAVING bool_or(n.is_alarm)
ORDER BY n.measurement, n.metric, n.version
