-- New scopes are appended to a table of their own, and merged into `cursor` later.

CREATE TABLE new_scopes (
    id        INTEGER PRIMARY KEY,
    series_id INTEGER NOT NULL REFERENCES series (id),
    run       INTEGER NOT NULL,
    scopes    TEXT NOT NULL
) STRICT;

DROP VIEW cursors;
CREATE VIEW cursors AS
    SELECT series.name AS series, cursor.scope, cursor.next, cursor.version
    FROM cursor JOIN series ON series.id = cursor.series_id
    UNION ALL
    SELECT series.name, value ->> 0, value ->> 1, value ->> 2
    FROM new_scopes JOIN series ON series.id = new_scopes.series_id JOIN json_each(new_scopes.scopes)
    WHERE NOT EXISTS (SELECT 1 FROM cursor WHERE series_id = series.id AND scope = value ->> 0);
