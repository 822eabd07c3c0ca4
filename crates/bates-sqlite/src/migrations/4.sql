-- Documents that were numbered, and numbers that were reserved, until what became of them is old. Times are
-- milliseconds since 1970. A body is kept until its document is delivered.
CREATE TABLE document (
    id         INTEGER PRIMARY KEY,
    event      BLOB NOT NULL UNIQUE,
    series_id  INTEGER NOT NULL REFERENCES series (id),
    scope      TEXT NOT NULL,
    position   INTEGER NOT NULL,
    number     TEXT NOT NULL,
    state      TEXT NOT NULL
        CHECK (state IN ('pending', 'delivered', 'dead', 'abandoned', 'reserved', 'confirmed', 'voided')),
    body       TEXT,
    tries      INTEGER NOT NULL DEFAULT 0,
    last_error TEXT,
    is_claimed INTEGER NOT NULL DEFAULT 0 CHECK (is_claimed IN (0, 1)),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- When a pending document is tried next, or a reservation is voided.
    due_at     INTEGER
) STRICT;

-- A number belongs to one document for ever, as long as that is kept; and documents are found by their numbers.
CREATE UNIQUE INDEX document_place ON document (series_id, scope, position);
CREATE INDEX document_number ON document (number);
CREATE INDEX document_due ON document (series_id, tries, due_at, id) WHERE state = 'pending';
CREATE INDEX document_reserved ON document (due_at) WHERE state = 'reserved';
CREATE INDEX document_done ON document (updated_at) WHERE state IN ('delivered', 'confirmed');

-- The requests that were numbered, by the keys that callers gave them. They outlive their documents: `pruned_as` is
-- the only state in which one is removed.
CREATE TABLE idempotency (
    series_id INTEGER NOT NULL REFERENCES series (id),
    caller    TEXT NOT NULL,
    key       TEXT NOT NULL,
    digest    BLOB NOT NULL,
    event     BLOB NOT NULL,
    scope     TEXT NOT NULL,
    position  INTEGER NOT NULL,
    number    TEXT NOT NULL,
    pruned_as TEXT NOT NULL,
    PRIMARY KEY (series_id, caller, key)
) STRICT, WITHOUT ROWID;
