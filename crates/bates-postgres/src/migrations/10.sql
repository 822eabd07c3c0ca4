-- Whether a try may have reached the sink although its outcome is not known. If its document is dead or abandoned, the
-- number is uncertain.
ALTER TABLE bates.document ADD COLUMN in_doubt boolean NOT NULL DEFAULT false;
