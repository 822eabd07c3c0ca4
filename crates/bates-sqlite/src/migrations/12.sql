-- The rules that reject numbers, as text, or 'changed' once they were others: which positions of an earlier time were
-- numbers is then not known.
ALTER TABLE series ADD COLUMN rules TEXT;
