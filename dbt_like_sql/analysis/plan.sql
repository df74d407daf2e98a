-- description: What was done with the newest as-of day of each window and measurement, why, and what may not be concluded.
-- materialized: view
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window.
-- column measurement: Hash of extraction, outcomes and estimand.
-- column decision: What was decided: estimate, interval, test, order, routing, or claims that may not be made.
-- column in_words: What was picked and why.
SELECT
  d.as_of,
  d.window_name,
  d.measurement,
  d.subject AS decision,
  d.detail AS in_words
FROM (
  SELECT * FROM analysis.diagnostics AS a
  QUALIFY a.as_of = max(a.as_of) OVER (PARTITION BY a.window_name, a.measurement)
) AS d
WHERE d.check_name = 'plan'
ORDER BY d.measurement, d.window_name, decision
