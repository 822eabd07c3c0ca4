-- Lists on a server that may forget, kept full for other programs. The epoch rises whenever what a list holds can no
-- longer be trusted. The server is the one that it began on; NULL if that is not known any more.
CREATE TABLE pool (
    series_id          INTEGER NOT NULL REFERENCES series (id),
    scope              TEXT NOT NULL,
    epoch              INTEGER NOT NULL DEFAULT 0,
    server_run         TEXT,
    server_replication TEXT,
    PRIMARY KEY (series_id, scope),
    CHECK ((server_run IS NULL) = (server_replication IS NULL))
) STRICT, WITHOUT ROWID;

-- What was granted to pools: positions from first to last. The process of a run has what is 'granted' until it is in
-- the list. What was 'popped' was handed out, and is kept only while that process holds something below it: what it
-- holds is told by its first position alone.
CREATE TABLE pooled (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    state     TEXT NOT NULL CHECK (state IN ('granted', 'pushed', 'popped')),
    run       INTEGER NOT NULL,
    PRIMARY KEY (series_id, scope, first)
) STRICT, WITHOUT ROWID;
