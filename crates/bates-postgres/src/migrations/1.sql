-- Which migrations were applied, and when.
CREATE TABLE bates.migration (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- The store as a whole: one row. The timeline is the one of PostgreSQL that numbers were last issued on: another one
-- means a standby that was promoted or a backup that was restored, and commits that may be missing. While the two
-- differ, or `stopped` says why, no node issues anything; `bates floor --accept-timeline` ends that.
CREATE TABLE bates.store (
    is_only     boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    timeline    bigint NOT NULL DEFAULT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
    stopped     text,
    acceptances bigint NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT now()
);
INSERT INTO bates.store DEFAULT VALUES;

-- What decides how positions read. Written once; a configuration that disagrees is refused. Never deleted.
CREATE TABLE bates.series (
    name            text COLLATE "C" PRIMARY KEY,
    template        text NOT NULL,
    parameters      text NOT NULL,
    shuffled        boolean NOT NULL,
    start           bigint NOT NULL,
    reset           text NOT NULL,
    time_zone       text NOT NULL,
    construction    integer NOT NULL,
    permutation_key bytea,
    -- How a series that was made at run time was described, as JSON. NULL: the configuration describes it, or it was
    -- retired; its cursors stay either way.
    description     text,
    scopes          bigint NOT NULL DEFAULT 0,
    pinned_at       timestamptz NOT NULL DEFAULT now()
);

-- The first position of each scope that is not yet granted. Never deleted. Room on each page, because cursors are
-- written again and again, and a row that stays on its page leaves the index alone.
CREATE TABLE bates.cursor (
    series  text COLLATE "C" NOT NULL REFERENCES bates.series (name),
    scope   text COLLATE "C" NOT NULL,
    next    bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (series, scope)
) WITH (fillfactor = 70);

-- A process that issues numbers.
CREATE TABLE bates.node (
    id         uuid PRIMARY KEY,
    host       text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    seen_at    timestamptz NOT NULL DEFAULT now()
);

-- The last commit of each line of a node: it commits one batch after the other on each. A node that lost its
-- connection while it committed looks here whether it did; and one that finds an older commit than it made knows
-- that the database was taken back.
CREATE TABLE bates.last_commit (
    node         uuid NOT NULL,
    line         integer NOT NULL,
    batch        uuid NOT NULL,
    number       bigint NOT NULL,
    committed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (node, line)
) WITH (fillfactor = 50);

-- What nodes were granted to hand out from memory: positions from first to last. What a clean stop gives back is
-- taken out again; of what a dead node held, nobody knows what it handed out.
CREATE TABLE bates.lease (
    series     text COLLATE "C" NOT NULL,
    scope      text COLLATE "C" NOT NULL,
    first      bigint NOT NULL,
    last       bigint NOT NULL,
    node       uuid NOT NULL,
    batch      uuid NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, scope, first)
);

-- What gapless series issued: positions from first to last, written in the commit that moved the cursor.
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

-- Positions that were granted by a commit whose outcome was learned too late: nobody was given them, and nobody
-- ever will be.
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

-- For people: each node, and when it was last heard of.
CREATE VIEW bates.nodes AS
    SELECT node.id, node.host, node.started_at, greatest(node.seen_at, max(last_commit.committed_at)) AS seen_at
    FROM bates.node LEFT JOIN bates.last_commit ON last_commit.node = node.id
    GROUP BY node.id;
