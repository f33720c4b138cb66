"""What a run leaves for people: tables, figures, the page, exported models."""
