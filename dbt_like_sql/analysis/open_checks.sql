-- description: Design and data checks that did not pass, newest as-of day of each window and measurement.
-- materialized: view
-- column as_of: Day whose trailing window is scored.
-- column window_name: Window.
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
FROM (
  SELECT * FROM analysis.diagnostics AS a
  QUALIFY a.as_of = max(a.as_of) OVER (PARTITION BY a.window_name, a.measurement)
) AS d
WHERE d.status <> 'ok'
ORDER BY d.measurement, window_name, check_name, d.subject
