"""A user's own tables: reading, preparing, and agreeing on columns across sites."""
