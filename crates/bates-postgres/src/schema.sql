-- The tables of a shared store. In every table, `first` and `last` are positions, both included. Names compare byte by
-- byte (COLLATE "C"), so that all nodes lock rows in one order, whatever the locale of the database.
CREATE SCHEMA IF NOT EXISTS bates;

-- The version of this schema: one row. A program that needs another version refuses the store.
CREATE TABLE bates.migration (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- The store as a whole: one row.
CREATE TABLE bates.store (
    is_only     boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    -- The timeline of PostgreSQL on which numbers were last issued. Another one means that a standby was promoted or a
    -- backup restored, and that commits may be missing: nothing is issued until `bates floor --accept-timeline`.
    timeline    bigint NOT NULL DEFAULT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
    -- Why no node issues anything. NULL: nodes issue.
    stopped     text,
    -- Microseconds since 1970 at the last `--accept-timeline`, always higher than before; 0: never. Nodes that know a
    -- lower value drop what they held.
    acceptances bigint NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT now(),
    -- A store is served only without a mark: 'left' for the store `mark_store`, or 'arriving' from it. `stopped` says
    -- so too, and only a move ends that.
    mark        text CHECK (mark IN ('left', 'arriving')),
    mark_store  text,
    -- Counts changes of series and tokens at run time. Nodes compare it to learn of changes by others.
    revision    bigint NOT NULL DEFAULT 0,
    -- Counts recalls. Nodes compare it to notice a recall; `series.epoch` names its series.
    recalls     bigint NOT NULL DEFAULT 0,
    -- Where the store is; elsewhere means that a dump was restored. `cluster` is NULL where PostgreSQL does not tell it.
    cluster     bigint,
    database    bigint,
    -- The move that marked the store, and its last run: the new store takes pages of that run only.
    mark_move   uuid,
    mark_run    uuid,
    -- Which store this is. A move copies it. The markers of shared pools hold it.
    id          uuid NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO bates.store DEFAULT VALUES;

-- What decides the text of a number: pinned once, and a configuration that disagrees is refused. Rows are never
-- deleted, so that a series of the same name continues or is refused.
CREATE TABLE bates.series (
    name            text COLLATE "C" PRIMARY KEY,
    template        text NOT NULL,
    parameters      text NOT NULL,
    shuffled        boolean NOT NULL,
    start           bigint NOT NULL,
    reset           text NOT NULL,
    time_zone       text NOT NULL,
    -- The version of the mapping from position to text.
    construction    integer NOT NULL,
    -- The secret of a shuffled series. Without it no number can be issued or read back.
    permutation_key bytea,
    -- The description of a series that was created at run time, as JSON. NULL: the configuration describes the series,
    -- or it is retired.
    description     text,
    -- The number of scopes, which a series limits.
    scopes          bigint NOT NULL DEFAULT 0,
    pinned_at       timestamptz NOT NULL DEFAULT now(),
    -- A recall sets it to the new value of `store.recalls`. A node answers by removing its held ranges of
    -- earlier epochs.
    epoch           bigint NOT NULL DEFAULT 0,
    -- What the series promises; only a command changes it. NULL until the series is opened for the first time.
    promise         text CHECK (promise IN ('unique', 'ordered', 'gapless')),
    -- The rules that reject numbers, as text; 'changed' after they changed, because it is then unknown which earlier
    -- positions were rejected.
    rules           text,
    -- No scope that is created from now on begins below this position.
    floor           bigint NOT NULL DEFAULT 0,
    -- As of when its gaps are: when the last reconciliation that wrote all of them began. NULL: never.
    reconciled_at   timestamptz
);

-- The first position of each scope that is not granted. Rows are never deleted. Pages keep room, because cursors are
-- updated again and again, and an update within a page leaves the index alone.
CREATE TABLE bates.cursor (
    series       text COLLATE "C" NOT NULL REFERENCES bates.series (name),
    scope        text COLLATE "C" NOT NULL,
    next         bigint NOT NULL,
    -- Rises with every write. A range returns only if the version is the one of its grant.
    version      bigint NOT NULL,
    -- The end of the adopted positions (`adopted`). 0: the scope has none, and a grant does not look for them.
    adopted_to   bigint NOT NULL DEFAULT 0,
    -- The position from which a scope is gapless; 0 if it always was, or is not.
    gapless_from bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (series, scope)
) WITH (fillfactor = 70);

-- The processes that issue numbers.
CREATE TABLE bates.node (
    id         uuid PRIMARY KEY,
    host       text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now(),
    -- The process on its machine, so that a command on the same machine sees that it has ended.
    process    text
);

-- The last commit of each line of a node; a line commits one batch after the other. A node that lost its connection
-- during a commit looks here for its batch. A node that finds an older commit than its own knows that the database was
-- taken back.
CREATE TABLE bates.last_commit (
    node         uuid NOT NULL,
    line         integer NOT NULL,
    batch        uuid NOT NULL,
    number       bigint NOT NULL,
    committed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (node, line)
) WITH (fillfactor = 50);

-- The ranges that nodes hold in memory. A clean stop removes them. What a crashed node held is uncertain: it may have
-- been issued.
CREATE TABLE bates.held_range (
    series     text COLLATE "C" NOT NULL,
    scope      text COLLATE "C" NOT NULL,
    first      bigint NOT NULL,
    last       bigint NOT NULL,
    node       uuid NOT NULL,
    batch      uuid NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT now(),
    -- The epoch of the series at the grant: a recall waits for ranges of earlier epochs.
    epoch      bigint NOT NULL DEFAULT 0,
    -- Since when the node counts as crashed, because it was silent. The range is uncertain and does not return.
    crashed_at timestamptz,
    PRIMARY KEY (series, scope, first)
);

-- The positions of documents, reservations and gapless numbers, written in the commit that moved the cursor.
CREATE TABLE bates.ledger (
    series    text COLLATE "C" NOT NULL,
    scope     text COLLATE "C" NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    node      uuid NOT NULL,
    batch     uuid NOT NULL,
    issued_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, scope, first)
);

-- Positions that a commit granted whose outcome was learned too late: no caller has them, and none ever gets them.
CREATE TABLE bates.burned (
    series    text COLLATE "C" NOT NULL,
    scope     text COLLATE "C" NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    node      uuid NOT NULL,
    batch     uuid NOT NULL,
    burned_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, scope, first)
);

-- For people: each node, and when the store last heard of it.
CREATE VIEW bates.nodes AS
    SELECT node.id, node.host, node.started_at, greatest(node.seen_at, max(last_commit.committed_at)) AS seen_at
    FROM bates.node LEFT JOIN bates.last_commit ON last_commit.node = node.id
    GROUP BY node.id;

-- Documents with a number, and reserved numbers, written in the commit that moved the cursor. Rows that are done are
-- pruned when they are old.
CREATE TABLE bates.document (
    -- The id of the document, which never changes: deliveries carry it.
    document_id uuid PRIMARY KEY,
    series      text COLLATE "C" NOT NULL,
    scope       text COLLATE "C" NOT NULL,
    position    bigint NOT NULL,
    number      text COLLATE "C" NOT NULL,
    state       text COLLATE "C" NOT NULL
        CHECK (state IN ('pending', 'delivered', 'dead', 'abandoned', 'reserved', 'confirmed', 'voided')),
    -- NULL for a reservation, and once the document is delivered.
    body        text,
    attempts    integer NOT NULL DEFAULT 0,
    last_error  text,
    -- Whether a relay delivers the document now. `due_at` ends the claim.
    is_claimed  boolean NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    -- When a pending document is tried next, or a reservation is voided.
    due_at      timestamptz,
    -- Whether a try may have reached the sink although its outcome is unknown. The number of such a document is
    -- uncertain if the document is dead or abandoned.
    in_doubt    boolean NOT NULL DEFAULT false,
    -- The caller that had it numbered: the name of a token, or an address. Another token may not end a reservation.
    caller      text COLLATE "C" NOT NULL
);

-- A position belongs to one document.
CREATE UNIQUE INDEX document_position ON bates.document (series, scope, position);
CREATE INDEX document_number ON bates.document (number);
CREATE INDEX document_due ON bates.document (series, attempts, due_at, document_id) WHERE state = 'pending';
CREATE INDEX document_reserved ON bates.document (due_at) WHERE state = 'reserved';
CREATE INDEX document_undelivered ON bates.document (series, scope, state, position)
    WHERE state IN ('dead', 'abandoned', 'voided');
CREATE INDEX document_done ON bates.document (updated_at) WHERE state IN ('delivered', 'confirmed');
CREATE INDEX document_given_up ON bates.document (updated_at) WHERE state IN ('dead', 'abandoned', 'voided');

-- The idempotency keys of callers: a request with a known key gets the number of the first one. A batch inserts its keys
-- before it locks anything else, and recognises the new ones by its own id. Keys outlive their documents.
CREATE TABLE bates.idempotency (
    caller      text COLLATE "C" NOT NULL,
    series      text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    -- The digest of the request: the same key with another request is refused.
    digest      bytea NOT NULL,
    document_id uuid NOT NULL,
    batch       uuid NOT NULL,
    -- NULL while the document has them, so that a key is written once. Pruning the document copies them, and its state
    -- into `pruned_as`.
    scope       text COLLATE "C",
    position    bigint,
    number      text COLLATE "C",
    pruned_as   text COLLATE "C",
    PRIMARY KEY (caller, series, key),
    CHECK (pruned_as IS NULL OR (scope IS NOT NULL AND position IS NOT NULL AND number IS NOT NULL))
);
CREATE INDEX idempotency_document ON bates.idempotency (document_id);

-- Positions that are missing, and why; written when it becomes known.
CREATE TABLE bates.lost (
    series  text COLLATE "C" NOT NULL,
    scope   text COLLATE "C" NOT NULL,
    first   bigint NOT NULL,
    last    bigint NOT NULL,
    reason  text NOT NULL,
    lost_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, scope, first)
);

-- The gaps of the last reconciliation.
CREATE TABLE bates.gap (
    series  text COLLATE "C" NOT NULL,
    scope   text COLLATE "C" NOT NULL,
    first   bigint NOT NULL,
    last    bigint NOT NULL,
    reason  text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, scope, first)
);

-- Adopted positions: an earlier system issued their numbers, and grants pass over them.
CREATE TABLE bates.adopted (
    series   text COLLATE "C" NOT NULL,
    scope    text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (series, scope, position)
);

-- Shared pools: lists on a Redis server, kept full for other programs.
CREATE TABLE bates.pool (
    series             text COLLATE "C" NOT NULL REFERENCES bates.series (name),
    scope              text COLLATE "C" NOT NULL,
    -- Rises when the content of the list can no longer be trusted. Each push carries it.
    epoch              bigint NOT NULL DEFAULT 0,
    -- The server on which the epoch began. NULL: unknown.
    server_run         text,
    server_replication text,
    PRIMARY KEY (series, scope),
    CHECK ((server_run IS NULL) = (server_replication IS NULL))
);

-- The positions granted to pools and not yet popped. Until they are pushed, the node holds them; of a crashed node it is
-- unknown whether it pushed them.
CREATE TABLE bates.pooled (
    series     text COLLATE "C" NOT NULL,
    scope      text COLLATE "C" NOT NULL,
    first      bigint NOT NULL,
    last       bigint NOT NULL,
    is_pushed  boolean NOT NULL DEFAULT false,
    node       uuid NOT NULL,
    batch      uuid NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, scope, first)
);

-- Who took which positions of audited series, with the first and the last number as they were issued. Times are those
-- of the node. Rows are never changed.
CREATE TABLE bates.audit (
    taken_at     timestamptz NOT NULL,
    id           uuid NOT NULL,
    series       text COLLATE "C" NOT NULL,
    scope        text COLLATE "C" NOT NULL,
    first        bigint NOT NULL,
    last         bigint NOT NULL,
    first_number text NOT NULL,
    last_number  text NOT NULL,
    -- Fewer than the positions where rules reject some.
    count        bigint NOT NULL,
    caller       text COLLATE "C" NOT NULL,
    channel      text NOT NULL,
    PRIMARY KEY (taken_at, id)
);
CREATE INDEX audit_by_position ON bates.audit (series, scope, first);
CREATE INDEX audit_by_time ON bates.audit (series, taken_at, id);

-- Client leases: positions that clients hold in advance, one row per range. The end of a lease deletes its rows and writes
-- the unused positions to `lost`. The time is that of the node.
CREATE TABLE bates.client_lease (
    id        uuid NOT NULL,
    series    text COLLATE "C" NOT NULL REFERENCES bates.series (name),
    scope     text COLLATE "C" NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    caller    text NOT NULL,
    leased_at timestamptz NOT NULL,
    PRIMARY KEY (id, first)
);
CREATE INDEX client_lease_position ON bates.client_lease (series, scope, first);

-- Callers whose tokens were made at run time. A secret is kept as its SHA-256 digest.
CREATE TABLE bates.token (
    name            text COLLATE "C" PRIMARY KEY,
    -- What the caller may do, as JSON.
    permissions     text NOT NULL,
    digest          bytea NOT NULL,
    -- During a rotation, the secret before is accepted too, until it ends.
    previous_digest bytea,
    previous_ends   timestamptz,
    created_at      timestamptz NOT NULL,
    -- NULL: never.
    expires_at      timestamptz,
    CHECK ((previous_digest IS NULL) = (previous_ends IS NULL))
);

-- How many numbers were drawn from the quota of a caller on its last day (UTC).
CREATE TABLE bates.quota (
    caller text COLLATE "C" PRIMARY KEY,
    day    date NOT NULL,
    drawn  bigint NOT NULL
);

-- The operations log: who changed what. Each record has the digest of the one before it in its chain. Times are those of
-- the node. Rows are never changed.
CREATE TABLE bates.operation (
    chain    text COLLATE "C" NOT NULL,
    number   bigint NOT NULL,
    previous bytea NOT NULL,
    digest   bytea NOT NULL,
    id       uuid NOT NULL UNIQUE,
    at       timestamptz NOT NULL,
    caller   text COLLATE "C" NOT NULL,
    channel  text NOT NULL,
    kind     text NOT NULL,
    -- NULL: no series, or several.
    series   text COLLATE "C",
    subject  text NOT NULL,
    before   text,
    after    text,
    PRIMARY KEY (chain, number)
);
CREATE INDEX operation_by_time ON bates.operation (at, id);

-- The last record of each chain: one chain for each host. A transaction locks it last, after all other rows.
CREATE TABLE bates.operation_chain (
    chain  text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,
    digest bytea NOT NULL
);
