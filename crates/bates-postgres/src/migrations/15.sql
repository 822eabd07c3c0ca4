-- After a restore, scopes that are missing in the backup must not begin at their start again.

ALTER TABLE bates.series ADD COLUMN floor bigint NOT NULL DEFAULT 0;
