-- What clients hold in advance: positions from first to last, one row a range. A lease ends with its rows; what was not
-- used of it goes to `lost`. The time is the one of the node that gave it.
CREATE TABLE bates.client_lease (
    id        uuid NOT NULL,
    series    text COLLATE "C" NOT NULL REFERENCES bates.series (name),
    scope     text COLLATE "C" NOT NULL,
    first     bigint NOT NULL,
    last      bigint NOT NULL,
    who       text NOT NULL,
    leased_at timestamptz NOT NULL,
    PRIMARY KEY (id, first)
);
CREATE INDEX client_lease_place ON bates.client_lease (series, scope, first);
