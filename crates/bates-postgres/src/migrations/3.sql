-- How often a series was described, changed or retired at run time, and how often a floor was raised: nodes look at
-- both to see whether others did so. When a floor was raised they give up what they hold in memory.
ALTER TABLE bates.store
    ADD COLUMN revision bigint NOT NULL DEFAULT 0,
    ADD COLUMN floors   bigint NOT NULL DEFAULT 0;
