-- Whether the store was left for another one, or is still being filled from one: then `stopped` says so, no node
-- issues anything, and nobody but a move ends that.
ALTER TABLE bates.store
    ADD COLUMN mark       text CHECK (mark IN ('left', 'arriving')),
    ADD COLUMN mark_store text;
