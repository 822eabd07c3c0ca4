-- Each time that a store is opened.
CREATE TABLE run (
    id         INTEGER PRIMARY KEY,
    started_at TEXT NOT NULL DEFAULT (datetime('now'))
) STRICT;

-- What the process of a run holds in memory: from `held_from` up to `next`, but for what is in the ledger. NULL:
-- nothing. When another run finds it, that process crashed, and nobody knows what it handed out.
ALTER TABLE cursor ADD COLUMN held_from INTEGER;
ALTER TABLE cursor ADD COLUMN run INTEGER;

-- Positions that nobody has, or that a crashed process held, and why; written when it became known.
CREATE TABLE lost (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    lost_at   TEXT NOT NULL DEFAULT (datetime('now')),
    PRIMARY KEY (series_id, scope, first)
) STRICT, WITHOUT ROWID;

-- The gaps that the last reconciliation found. Times are milliseconds since 1970.
CREATE TABLE gap (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    seen_at   INTEGER NOT NULL,
    PRIMARY KEY (series_id, scope, first)
) STRICT, WITHOUT ROWID;
