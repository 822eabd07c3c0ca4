-- One row: how many commits there were, and when the last one was made, in milliseconds since 1970 by the clock of the
-- process. Every commit writes it. `bates.state`, beside the database, has the last commit whose answers were sent.
CREATE TABLE progress (
    commits INTEGER NOT NULL,
    seen_at INTEGER
) STRICT;
INSERT INTO progress VALUES (0, NULL);

-- Every commit shows now that something can be written.
DROP TABLE probe;
