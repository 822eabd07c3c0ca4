-- Positions whose numbers somebody else gave out: no grant holds them.
CREATE TABLE bates.aside (
    series   text COLLATE "C" NOT NULL,
    scope    text COLLATE "C" NOT NULL,
    position bigint NOT NULL,
    PRIMARY KEY (series, scope, position)
);

-- Past the last of them; 0 where there are none, and nobody has to look.
ALTER TABLE bates.cursor ADD COLUMN aside_to bigint NOT NULL DEFAULT 0;
