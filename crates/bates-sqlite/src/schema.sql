-- The tables of an embedded store, to be read with `sqlite3` too. In every table, `first` and `last` are positions, both
-- included.

-- What decides the text of a number: pinned once, and a configuration that disagrees is refused. Rows are never
-- deleted, so that a series of the same name continues or is refused.
CREATE TABLE series (
    id              INTEGER PRIMARY KEY,
    name            TEXT NOT NULL UNIQUE,
    template        TEXT NOT NULL,
    parameters      TEXT NOT NULL,
    shuffled        INTEGER NOT NULL CHECK (shuffled IN (0, 1)),
    start           INTEGER NOT NULL,
    reset           TEXT NOT NULL,
    time_zone       TEXT NOT NULL,
    -- The version of the mapping from position to text.
    construction    INTEGER NOT NULL,
    -- The secret of a shuffled series. Without it no number can be issued or read back.
    permutation_key BLOB,
    -- The number of scopes, which a series limits.
    scopes          INTEGER NOT NULL DEFAULT 0,
    pinned_at       TEXT NOT NULL DEFAULT (datetime('now')),
    -- The description of a series that was created at run time, as JSON. NULL: the configuration describes the series,
    -- or it is retired.
    description     TEXT,
    -- What the series promises; only a command changes it. NULL until the series is opened for the first time.
    promise         TEXT,
    -- The rules that reject numbers, as text; 'changed' after they changed, because it is then unknown which earlier
    -- positions were rejected.
    rules           TEXT,
    -- No scope that is created from now on begins below this position.
    floor           INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The first position of each scope that is not granted. Rows are never deleted.
CREATE TABLE cursor (
    series_id    INTEGER NOT NULL REFERENCES series (id),
    scope        TEXT NOT NULL,
    next         INTEGER NOT NULL,
    -- Rises with every write. A range returns only if the version is the one of its grant.
    version      INTEGER NOT NULL,
    -- The process of `run` holds the positions from here up to `next` in memory, except those in the ledger. NULL: it
    -- holds none. A later run knows by it what a crashed process held, which is uncertain: it may have been issued.
    held_from    INTEGER,
    run          INTEGER,
    -- The end of the adopted positions (`adopted`). 0: the scope has none, and a grant does not look for them.
    adopted_to   INTEGER NOT NULL DEFAULT 0,
    -- The position from which a scope is gapless; 0 if it always was, or is not.
    gapless_from INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (series_id, scope)
) STRICT, WITHOUT ROWID;

-- Scopes that were created lately, each as `[scope, next, version, held_from]`: one row for all that a commit created in a
-- series. They are merged into `cursor`, many at a time; a scope that is there too is out of date here.
CREATE TABLE new_scopes (
    id        INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL REFERENCES series (id),
    run       INTEGER NOT NULL,
    scopes    TEXT NOT NULL
) STRICT;

-- The positions of documents, reservations and gapless numbers, written in the commit that moved the cursor.
CREATE TABLE ledger (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    issued_at TEXT NOT NULL DEFAULT (datetime('now')),
    PRIMARY KEY (series_id, scope, first)
) STRICT, WITHOUT ROWID;

-- For people: the cursors, with the names of their series.
CREATE VIEW cursors AS
    SELECT series.name AS series, cursor.scope, cursor.next, cursor.version
    FROM cursor JOIN series ON series.id = cursor.series_id
    UNION ALL
    SELECT series.name, value ->> 0, value ->> 1, value ->> 2
    FROM new_scopes JOIN series ON series.id = new_scopes.series_id JOIN json_each(new_scopes.scopes)
    WHERE NOT EXISTS (SELECT 1 FROM cursor WHERE series_id = series.id AND scope = value ->> 0);

-- A store is served only without a mark: 'left' for another store, or 'arriving' from it. At most one row.
CREATE TABLE mark (
    kind      TEXT NOT NULL CHECK (kind IN ('left', 'arriving')),
    store     TEXT NOT NULL,
    marked_at TEXT NOT NULL DEFAULT (datetime('now')),
    -- The move that marked the store, and its last run: the new store takes pages of that run only.
    move      BLOB,
    run       BLOB
) STRICT;

-- Documents with a number, and reserved numbers, written in the commit that moved the cursor. Rows that are done are
-- pruned when they are old. Times are milliseconds since 1970.
CREATE TABLE document (
    id          INTEGER PRIMARY KEY,
    -- The id of the document, which never changes: deliveries carry it.
    document_id BLOB NOT NULL UNIQUE,
    series_id   INTEGER NOT NULL REFERENCES series (id),
    scope       TEXT NOT NULL,
    position    INTEGER NOT NULL,
    number      TEXT NOT NULL,
    state       TEXT NOT NULL
        CHECK (state IN ('pending', 'delivered', 'dead', 'abandoned', 'reserved', 'confirmed', 'voided')),
    -- NULL for a reservation, and once the document is delivered.
    body        TEXT,
    attempts    INTEGER NOT NULL DEFAULT 0,
    last_error  TEXT,
    -- Whether a relay delivers the document now. Opening the store ends all claims.
    is_claimed  INTEGER NOT NULL DEFAULT 0 CHECK (is_claimed IN (0, 1)),
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    -- When a pending document is tried next, or a reservation is voided.
    due_at      INTEGER,
    -- Whether a try may have reached the sink although its outcome is unknown. The number of such a document is
    -- uncertain if the document is dead or abandoned.
    in_doubt    INTEGER NOT NULL DEFAULT 0 CHECK (in_doubt IN (0, 1)),
    -- The caller that had it numbered: the name of a token, or an address. Another token may not end a reservation.
    caller      TEXT NOT NULL
) STRICT;

-- A position belongs to one document.
CREATE UNIQUE INDEX document_position ON document (series_id, scope, position);
CREATE INDEX document_number ON document (number);
CREATE INDEX document_due ON document (series_id, attempts, due_at, id) WHERE state = 'pending';
CREATE INDEX document_reserved ON document (due_at) WHERE state = 'reserved';
CREATE INDEX document_done ON document (updated_at) WHERE state IN ('delivered', 'confirmed');
CREATE INDEX document_undelivered ON document (updated_at) WHERE state IN ('dead', 'abandoned', 'voided');

-- Documents that were removed without being delivered or confirmed, and their state, with which their keys answer.
-- Here and not in the keys, which have no index by document: it would cost every document with a key.
CREATE TABLE removed (
    document_id BLOB PRIMARY KEY,
    state       TEXT NOT NULL CHECK (state IN ('dead', 'abandoned', 'voided'))
) STRICT, WITHOUT ROWID;

-- The idempotency keys of callers: a request with a known key gets the number of the first one. Keys outlive their
-- documents.
CREATE TABLE idempotency (
    series_id   INTEGER NOT NULL REFERENCES series (id),
    caller      TEXT NOT NULL,
    key         TEXT NOT NULL,
    -- The digest of the request: the same key with another request is refused.
    digest      BLOB NOT NULL,
    document_id BLOB NOT NULL,
    scope       TEXT NOT NULL,
    position    INTEGER NOT NULL,
    number      TEXT NOT NULL,
    -- The answer once the document is gone, unless it is in `removed`.
    pruned_as   TEXT NOT NULL,
    PRIMARY KEY (series_id, caller, key)
) STRICT, WITHOUT ROWID;

-- Each opening of the store.
CREATE TABLE run (
    id         INTEGER PRIMARY KEY,
    started_at TEXT NOT NULL DEFAULT (datetime('now'))
) STRICT;

-- Positions that are missing or that a crashed process held, and why; written when it becomes known.
CREATE TABLE lost (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    lost_at   TEXT NOT NULL DEFAULT (datetime('now')),
    PRIMARY KEY (series_id, scope, first)
) STRICT, WITHOUT ROWID;

-- The gaps of the last reconciliation. Times are milliseconds since 1970.
CREATE TABLE gap (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    seen_at   INTEGER NOT NULL,
    PRIMARY KEY (series_id, scope, first)
) STRICT, WITHOUT ROWID;

-- As of when the gaps of a series are: when the last reconciliation that wrote all of them began. Times are milliseconds
-- since 1970.
CREATE TABLE reconciled (
    series_id INTEGER PRIMARY KEY REFERENCES series (id),
    at        INTEGER NOT NULL
) STRICT;

-- Adopted positions: an earlier system issued their numbers, and grants pass over them.
CREATE TABLE adopted (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (series_id, scope, position)
) STRICT, WITHOUT ROWID;

-- Shared pools: lists on a Redis server, kept full for other programs.
CREATE TABLE pool (
    series_id          INTEGER NOT NULL REFERENCES series (id),
    scope              TEXT NOT NULL,
    -- Rises when the content of the list can no longer be trusted. Each push carries it.
    epoch              INTEGER NOT NULL DEFAULT 0,
    -- The server on which the epoch began. NULL: unknown.
    server_run         TEXT,
    server_replication TEXT,
    PRIMARY KEY (series_id, scope),
    CHECK ((server_run IS NULL) = (server_replication IS NULL))
) STRICT, WITHOUT ROWID;

-- The positions granted to pools.
CREATE TABLE pooled (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    -- The process of `run` holds 'granted' positions until they are 'pushed'. A 'popped' row is kept only while that process
    -- holds positions below it: `cursor.held_from` names only the first position of what it holds. What a caller was
    -- given past the pool while the process holds others is such a row, too.
    state     TEXT NOT NULL CHECK (state IN ('granted', 'pushed', 'popped')),
    run       INTEGER NOT NULL,
    PRIMARY KEY (series_id, scope, first)
) STRICT, WITHOUT ROWID;

-- Who took which positions of audited series, with the first and the last number as they were issued. Times are
-- microseconds since 1970, by the clock of the process. Rows are never changed.
CREATE TABLE audit (
    taken_at     INTEGER NOT NULL,
    id           BLOB NOT NULL,
    series_id    INTEGER NOT NULL REFERENCES series (id),
    scope        TEXT NOT NULL,
    first        INTEGER NOT NULL,
    last         INTEGER NOT NULL,
    first_number TEXT NOT NULL,
    last_number  TEXT NOT NULL,
    -- Fewer than the positions where rules reject some.
    count        INTEGER NOT NULL,
    caller       TEXT NOT NULL,
    channel      TEXT NOT NULL,
    PRIMARY KEY (taken_at, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_by_position ON audit (series_id, scope, first);
CREATE INDEX audit_by_time ON audit (series_id, taken_at, id);

-- Client leases: positions that clients hold in advance, one row per range. The end of a lease deletes its rows and writes
-- the unused positions to `lost`. The time is milliseconds since 1970, by the clock of the process.
CREATE TABLE client_lease (
    id        BLOB NOT NULL,
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    caller    TEXT NOT NULL,
    leased_at INTEGER NOT NULL,
    PRIMARY KEY (id, first)
) STRICT, WITHOUT ROWID;
CREATE INDEX client_lease_position ON client_lease (series_id, scope, first);

-- Callers whose tokens were made at run time. A secret is kept as its SHA-256 digest. Times are microseconds since 1970.
CREATE TABLE token (
    name            TEXT PRIMARY KEY,
    -- What the caller may do, as JSON.
    permissions     TEXT NOT NULL,
    digest          BLOB NOT NULL,
    -- During a rotation, the secret before is accepted too, until it ends.
    previous_digest BLOB,
    previous_ends   INTEGER,
    created_at      INTEGER NOT NULL,
    -- NULL: never.
    expires_at      INTEGER,
    CHECK ((previous_digest IS NULL) = (previous_ends IS NULL))
) STRICT, WITHOUT ROWID;

-- How many numbers were drawn from the quota of a caller on its last day, in days since 1970 (UTC).
CREATE TABLE quota (
    caller TEXT PRIMARY KEY,
    day    INTEGER NOT NULL,
    drawn  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The operations log: who changed what. Each record has the digest of the one before it in its chain. Times are
-- microseconds since 1970, by the clock of the process. Rows are never changed.
CREATE TABLE operation (
    chain    TEXT NOT NULL,
    number   INTEGER NOT NULL,
    previous BLOB NOT NULL,
    digest   BLOB NOT NULL,
    id       BLOB NOT NULL UNIQUE,
    at       INTEGER NOT NULL,
    caller   TEXT NOT NULL,
    channel  TEXT NOT NULL,
    kind     TEXT NOT NULL,
    -- NULL: no series, or several.
    series   TEXT,
    subject  TEXT NOT NULL,
    before   TEXT,
    after    TEXT,
    PRIMARY KEY (chain, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX operation_by_time ON operation (at, id);

-- The last record of each chain: one chain for each host that had the store open.
CREATE TABLE operation_chain (
    chain  TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    digest BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- One row, which every commit updates. `bates.state`, beside the database, has the last commit whose answers were sent:
-- a store with fewer commits is refused.
CREATE TABLE progress (
    commits INTEGER NOT NULL,
    -- When the last commit was made, in milliseconds since 1970. NULL until the store is opened for the first time.
    seen_at INTEGER
) STRICT;
-- The creation of the store is its first commit.
INSERT INTO progress VALUES (1, NULL);

-- One row: which store this is. A move copies it. The markers of shared pools hold it.
CREATE TABLE identity (id BLOB NOT NULL) STRICT;
INSERT INTO identity VALUES (randomblob(16));
