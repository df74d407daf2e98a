-- description: Design and data checks that did not pass in the newest analysis of each measurement.
-- materialized: view
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window of the newest analysis.
-- column measurement: Hash of extraction, outcomes and estimand.
-- column check_name: Check.
-- column subject: What it was made on.
-- column status: suspect, inconclusive or unavailable.
-- column measured: Value.
-- column bound: Limit that the value is held against.
-- column detail: One sentence.
SELECT
  d.as_of,
  d.window_name,
  d.measurement,
  d.check_name,
  d.subject,
  d.status,
  d.value AS measured,
  d.bound,
  d.detail
FROM analysis.diagnostics AS d
INNER JOIN analysis.newest_analysis AS w
  ON w.measurement = d.measurement AND w.as_of = d.as_of AND w.window_name = d.window_name
WHERE d.status <> 'ok'
ORDER BY d.measurement, check_name, d.subject
