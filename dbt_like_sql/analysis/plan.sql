-- description: What was done in the newest analysis of each measurement, why, and what may not be concluded.
-- materialized: view
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window of the newest analysis.
-- column measurement: Hash of extraction, outcomes and estimand.
-- column decision: What was decided: estimate, interval, test, order, routing, or claims that may not be made.
-- column in_words: What was picked and why.
SELECT
  d.as_of,
  d.window_name,
  d.measurement,
  d.subject AS decision,
  d.detail AS in_words
FROM analysis.diagnostics AS d
INNER JOIN analysis.newest_analysis AS w
  ON w.measurement = d.measurement AND w.as_of = d.as_of AND w.window_name = d.window_name
WHERE d.check_name = 'plan'
ORDER BY d.measurement, decision
