-- Who took which positions of the series that are audited: from first to last, with the first and the last number as
-- they were given. Times are microseconds since 1970, by the clock of the process. Rows are never changed.
CREATE TABLE audit (
    taken_at     INTEGER NOT NULL,
    id           BLOB NOT NULL,
    series_id    INTEGER NOT NULL REFERENCES series (id),
    scope        TEXT NOT NULL,
    first        INTEGER NOT NULL,
    last         INTEGER NOT NULL,
    first_number TEXT NOT NULL,
    last_number  TEXT NOT NULL,
    count        INTEGER NOT NULL,
    who          TEXT NOT NULL,
    how          TEXT NOT NULL,
    PRIMARY KEY (taken_at, id)
) STRICT, WITHOUT ROWID;

-- Who took a position, and what was taken of a series, by time.
CREATE INDEX audit_by_position ON audit (series_id, scope, first);
CREATE INDEX audit_by_time ON audit (series_id, taken_at, id);
