-- Positions that nobody has, and why; written when it became known.
CREATE TABLE bates.lost (
    series  text COLLATE "C" NOT NULL,
    scope   text COLLATE "C" NOT NULL,
    first   bigint NOT NULL,
    last    bigint NOT NULL,
    reason  text NOT NULL,
    lost_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, scope, first)
);

-- The gaps that the last reconciliation found.
CREATE TABLE bates.gap (
    series  text COLLATE "C" NOT NULL,
    scope   text COLLATE "C" NOT NULL,
    first   bigint NOT NULL,
    last    bigint NOT NULL,
    reason  text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (series, scope, first)
);
