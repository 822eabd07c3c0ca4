-- One row: which store this is. A move takes it along. The markers of shared pools hold it.
CREATE TABLE identity (id BLOB NOT NULL) STRICT;
INSERT INTO identity VALUES (randomblob(16));
