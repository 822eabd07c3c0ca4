-- Who took which positions of the series that are audited: from first to last, with the first and the last number as
-- they were given. Times are those of the node that gave them. Rows are never changed.
CREATE TABLE bates.audit (
    taken_at     timestamptz NOT NULL,
    id           uuid NOT NULL,
    series       text COLLATE "C" NOT NULL,
    scope        text COLLATE "C" NOT NULL,
    first        bigint NOT NULL,
    last         bigint NOT NULL,
    first_number text NOT NULL,
    last_number  text NOT NULL,
    count        bigint NOT NULL,
    who          text COLLATE "C" NOT NULL,
    how          text NOT NULL,
    PRIMARY KEY (taken_at, id)
);

-- Who took a position, and what was taken of a series, by time.
CREATE INDEX audit_by_position ON bates.audit (series, scope, first);
CREATE INDEX audit_by_time ON bates.audit (series, taken_at, id);
