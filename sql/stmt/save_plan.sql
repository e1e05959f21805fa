-- Store a runs targets and move the positions to where it begins.
SELECT connector._save_plan($1, $2, $3)
