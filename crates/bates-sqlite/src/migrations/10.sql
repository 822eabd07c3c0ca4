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

-- One row: how many commits there were, and when the last one was made, in milliseconds since 1970 by the clock of the
-- process. Every commit writes it. `bates.state`, beside the database, has the last commit whose answers were sent.
CREATE TABLE progress (
    commits INTEGER NOT NULL,
    seen_at INTEGER
) STRICT;
INSERT INTO progress VALUES (0, NULL);

-- Every commit shows now that something can be written.
DROP TABLE probe;
