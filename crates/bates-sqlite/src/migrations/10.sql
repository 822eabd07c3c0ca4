-- The move that marked the store and its last run: the new store takes pages of that run only.
ALTER TABLE mark ADD COLUMN move BLOB;
ALTER TABLE mark ADD COLUMN run BLOB;

-- What the series promises; NULL until it is opened for the first time.
ALTER TABLE series ADD COLUMN promise TEXT;

-- The first position since which a scope is gapless; 0 if it always was, or is not.
ALTER TABLE cursor ADD COLUMN gapless_from INTEGER NOT NULL DEFAULT 0;

-- Whether a try may have reached the sink although its outcome is not known. If its document is dead or abandoned, the
-- number is uncertain.
ALTER TABLE document ADD COLUMN in_doubt INTEGER NOT NULL DEFAULT 0 CHECK (in_doubt IN (0, 1));
