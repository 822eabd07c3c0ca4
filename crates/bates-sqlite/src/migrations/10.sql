-- Whether a try may have reached the sink although its outcome is not known. If its document is dead or abandoned, the
-- number is uncertain.
ALTER TABLE document ADD COLUMN in_doubt INTEGER NOT NULL DEFAULT 0 CHECK (in_doubt IN (0, 1));
