-- description: How often masking found something, by source, entity and rule set, in counts only.
-- materialized: table
-- column source: Reader that produced the text.
-- column entity: Entity; WITHHELD for fields over budget.
-- column subtype: Kind of secret; empty otherwise.
-- column ruleset: Digest of the rule set; counts of two rule sets do not compare.
-- column key_epoch: Epoch of the masking key.
-- column n_fields: Fields that held at least one hit.
-- column n_rules: Rules that fired.
-- column n_rows: Values that held a hit, added over rules.
-- column n_hits: Spans replaced.
-- column n_bytes: Bytes replaced.
SELECT
  r.source,
  r.entity,
  r.subtype,
  r.ruleset,
  r.key_epoch,
  count(DISTINCT r.field) AS n_fields,
  count(DISTINCT r.rule_id) AS n_rules,
  CAST(sum(r.n_rows) AS BIGINT) AS n_rows,
  CAST(sum(r.n_hits) AS BIGINT) AS n_hits,
  CAST(sum(r.n_bytes) AS BIGINT) AS n_bytes
FROM masked.redactions AS r
GROUP BY ALL
ORDER BY r.source, r.entity, r.subtype, r.ruleset, r.key_epoch
