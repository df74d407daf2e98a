-- description: What could not be read, by source and code.
-- materialized: table
-- column source: Reader, or 'unknown'.
-- column code: Stable code (docs/errors.md).
-- column n_records: Records or files.
-- column n_files: Files concerned.
-- column n_bytes: Bytes concerned.
SELECT
  q.source,
  q.code,
  count(*) AS n_records,
  count(DISTINCT q.file_id) AS n_files,
  CAST(sum(q.n_bytes) AS BIGINT) AS n_bytes
FROM masked.quarantine AS q
GROUP BY q.source, q.code
ORDER BY q.source, n_records DESC, q.code
