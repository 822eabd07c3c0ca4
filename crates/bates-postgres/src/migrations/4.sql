-- Documents that were numbered, and numbers that were reserved, until what became of them is old. Written in the
-- commit that moved the cursor. A body is kept until its document is delivered. The event is its id for ever.
CREATE TABLE bates.document (
    event      uuid PRIMARY KEY,
    series     text COLLATE "C" NOT NULL,
    scope      text COLLATE "C" NOT NULL,
    position   bigint NOT NULL,
    number     text COLLATE "C" NOT NULL,
    state      text COLLATE "C" NOT NULL
        CHECK (state IN ('pending', 'delivered', 'dead', 'abandoned', 'reserved', 'confirmed', 'voided')),
    body       text,
    tries      integer NOT NULL DEFAULT 0,
    last_error text,
    is_claimed boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- When a pending document is tried next, or a reservation is voided.
    due_at     timestamptz
);

-- A number belongs to one document for ever, as long as that is kept; and documents are found by their numbers.
CREATE UNIQUE INDEX document_place ON bates.document (series, scope, position);
CREATE INDEX document_number ON bates.document (number);
CREATE INDEX document_due ON bates.document (series, tries, due_at, event) WHERE state = 'pending';
CREATE INDEX document_reserved ON bates.document (due_at) WHERE state = 'reserved';
CREATE INDEX document_undelivered ON bates.document (series, scope, state, position)
    WHERE state IN ('dead', 'abandoned', 'voided');
CREATE INDEX document_done ON bates.document (updated_at) WHERE state IN ('delivered', 'confirmed');

-- The requests that were numbered, by the keys that callers gave them. A batch inserts its keys before it locks
-- anything else, and finds those that are new by its own id. They outlive their documents: when one is removed,
-- `pruned_as` becomes the state that it was in, and scope, position and number are kept here; until then they are
-- those of the document, and NULL here, so that a key is written once.
CREATE TABLE bates.idempotency (
    caller    text COLLATE "C" NOT NULL,
    series    text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    digest    bytea NOT NULL,
    event     uuid NOT NULL,
    batch     uuid NOT NULL,
    scope     text COLLATE "C",
    position  bigint,
    number    text COLLATE "C",
    pruned_as text COLLATE "C",
    PRIMARY KEY (caller, series, key),
    CHECK (pruned_as IS NULL OR (scope IS NOT NULL AND position IS NOT NULL AND number IS NOT NULL))
);
CREATE INDEX idempotency_event ON bates.idempotency (event);
