-- A list of gaps says as of when they are.
ALTER TABLE bates.series ADD COLUMN reconciled_at timestamptz;
