-- Each series has an epoch. A recall raises it to the next value of `store.floors`, and a node answers by taking what it
-- was granted before out of `lease`. `store.floors` tells nodes that there is a recall.
ALTER TABLE bates.series ADD COLUMN epoch bigint NOT NULL DEFAULT 0;

-- The epoch of the series when the range was granted; and since when its node counts as crashed, because it was silent:
-- from then on the range is uncertain, and is not given back.
ALTER TABLE bates.lease
    ADD COLUMN epoch      bigint NOT NULL DEFAULT 0,
    ADD COLUMN crashed_at timestamptz;

-- Which process of which machine a node is, so that a command on the same machine can tell that it has ended.
ALTER TABLE bates.node ADD COLUMN process text;

-- The cluster and the database that the store is in: another one means that a dump was restored elsewhere. NULL where
-- PostgreSQL does not tell.
ALTER TABLE bates.store
    ADD COLUMN cluster  bigint,
    ADD COLUMN database bigint;

-- What a series promises; NULL until it is opened for the first time. Changed by a command only.
ALTER TABLE bates.series ADD COLUMN promise text CHECK (promise IN ('unique', 'ordered', 'gapless'));

-- The first position since which a scope is gapless; 0 if it always was, or is not.
ALTER TABLE bates.cursor ADD COLUMN gapless_from bigint NOT NULL DEFAULT 0;

-- The move that marked the store and its last run: the new store takes pages of that run only.
ALTER TABLE bates.store
    ADD COLUMN mark_move uuid,
    ADD COLUMN mark_run  uuid;

-- Whether a try may have reached the sink although its outcome is not known. If its document is dead or abandoned, the
-- number is uncertain.
ALTER TABLE bates.document ADD COLUMN in_doubt boolean NOT NULL DEFAULT false;
