-- description: What became of every record read, by source: kept, declared noise, or quarantined.
-- materialized: table
-- column source: Reader, or 'unknown'.
-- column n_files: Files and archive members.
-- column n_bytes: Bytes after decompression.
-- column n_sessions_found: Sessions found, before copies are resolved.
-- column rows_read: Records found.
-- column rows_kept: Records that became part of a session.
-- column rows_noise: Records that the reader declares to carry nothing to analyse.
-- column rows_quarantined: Records that could not be read.
-- column rows_unaccounted: Records that are none of the three; 0 unless a reader is at fault.
-- column n_files_with_quarantine: Files with at least one record that could not be read.
SELECT
  f.source,
  count(*) AS n_files,
  CAST(sum(f.n_bytes) AS BIGINT) AS n_bytes,
  CAST(sum(f.n_sessions) AS BIGINT) AS n_sessions_found,
  CAST(sum(f.rows_read) AS BIGINT) AS rows_read,
  CAST(sum(f.rows_kept) AS BIGINT) AS rows_kept,
  CAST(sum(f.rows_noise) AS BIGINT) AS rows_noise,
  CAST(sum(f.rows_quarantined) AS BIGINT) AS rows_quarantined,
  CAST(sum(f.rows_read - f.rows_kept - f.rows_noise - f.rows_quarantined) AS BIGINT) AS rows_unaccounted,
  count(*) FILTER (f.rows_quarantined > 0) AS n_files_with_quarantine
FROM masked.files AS f
GROUP BY f.source
ORDER BY f.source
