-- Lists on a server that may forget, kept full for other programs. The epoch rises whenever what a list holds can no
-- longer be trusted. The server is the one that it began on; NULL if that is not known any more.
CREATE TABLE bates.pool (
    series             text COLLATE "C" NOT NULL REFERENCES bates.series (name),
    scope              text COLLATE "C" NOT NULL,
    epoch              bigint NOT NULL DEFAULT 0,
    server_run         text,
    server_replication text,
    PRIMARY KEY (series, scope),
    CHECK ((server_run IS NULL) = (server_replication IS NULL))
);

-- What was granted to pools and not popped yet: positions from first to last. Until it is pushed, the node that was
-- granted it has it; of what a dead one had, nobody knows whether it was pushed.
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
