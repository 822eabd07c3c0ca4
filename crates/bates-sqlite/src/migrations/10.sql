-- The move that marked the store and its last run: the new store takes pages of that run only.
ALTER TABLE mark ADD COLUMN move BLOB;
ALTER TABLE mark ADD COLUMN run BLOB;
