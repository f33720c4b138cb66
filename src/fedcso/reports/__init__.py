"""Reports of runs: tables, figures, the HTML page, exported models, and statistics for decisions."""
