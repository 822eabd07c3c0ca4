-- What clients hold in advance: positions from first to last, one row a range. A lease ends with its rows; what was not
-- used of it goes to `lost`. The time is milliseconds since 1970, by the clock of the process.
CREATE TABLE client_lease (
    id        BLOB NOT NULL,
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    who       TEXT NOT NULL,
    leased_at INTEGER NOT NULL,
    PRIMARY KEY (id, first)
) STRICT, WITHOUT ROWID;
CREATE INDEX client_lease_place ON client_lease (series_id, scope, first);
