-- A list of gaps says as of when they are.

CREATE TABLE reconciled (
    series_id INTEGER PRIMARY KEY REFERENCES series (id),
    at        INTEGER NOT NULL
) STRICT;
