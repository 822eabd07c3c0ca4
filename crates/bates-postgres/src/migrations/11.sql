-- Which store this is. A move takes it along. The markers of shared pools hold it.
ALTER TABLE bates.store ADD COLUMN id uuid NOT NULL DEFAULT gen_random_uuid();
