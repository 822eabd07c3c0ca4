-- Positions whose numbers somebody else gave out: no grant holds them.
CREATE TABLE aside (
    series_id INTEGER NOT NULL REFERENCES series (id),
    scope     TEXT NOT NULL,
    position  INTEGER NOT NULL,
    PRIMARY KEY (series_id, scope, position)
) STRICT, WITHOUT ROWID;

-- Past the last of them; 0 where there are none, and nobody has to look.
ALTER TABLE cursor ADD COLUMN aside_to INTEGER NOT NULL DEFAULT 0;
