-- After a restore, scopes that are missing in the backup must not begin at their start again.

ALTER TABLE series ADD COLUMN floor INTEGER NOT NULL DEFAULT 0;
