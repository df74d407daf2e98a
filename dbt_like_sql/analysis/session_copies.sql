-- description: Copies of sessions that were read and not counted again, by rule and by the two sources.
-- materialized: table
-- column rule: Why the copy does not count (docs/formats.md, "Which copy counts").
-- column source: Reader that produced the copy.
-- column counted_source: Reader of the session that counts for it.
-- column n_copies: Copies.
-- column n_sessions: Sessions that count for them.
-- column n_messages: Messages of these copies.
SELECT
  c.rule,
  c.source,
  c.counted_source,
  count(*) AS n_copies,
  count(DISTINCT c.counted_session_id) AS n_sessions,
  CAST(sum(c.n_messages) AS BIGINT) AS n_messages
FROM masked.copies AS c
GROUP BY c.rule, c.source, c.counted_source
ORDER BY c.rule, c.source, c.counted_source
