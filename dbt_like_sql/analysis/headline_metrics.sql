-- description: The metric that leads, for every measurement whose criteria are in the warehouse.
-- materialized: view
-- column measurement: Hash of extraction, outcomes and estimand.
-- column metric: The headline metric of that measurement.
SELECT DISTINCT
  c.measurement,
  c.headline AS metric
FROM meta.criteria AS c
