-- description: The newest analysis of each measurement: the as-of day and window that a report shows, and that the other models of results keep to.
-- materialized: table
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window: a number of days such as 28d, or all; tables such as net_improvement hold every window of every as-of day.
-- column window_start: First day in the window.
-- column window_end: Last day in the window.
-- column measurement: Hash of extraction, outcomes and estimand; rows compare only if it is equal.
SELECT
  d.as_of,
  d.window_name,
  d.window_start,
  d.window_end,
  d.measurement
FROM (
  -- Every analysis has checks, also one in which nothing could be estimated.
  SELECT DISTINCT a.as_of, a.window_name, a.window_start, a.window_end, a.measurement
  FROM analysis.diagnostics AS a
) AS d
-- The choice of a report: the newest day, and of its windows the whole archive before the longest.
QUALIFY row_number() OVER (
  PARTITION BY d.measurement ORDER BY d.as_of DESC, d.window_name = 'all' DESC, d.window_start, d.window_name
) = 1
ORDER BY d.measurement
