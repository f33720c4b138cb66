"""The vocabulary: problems, estimators, algorithms, plans, tasks, and what they are made of. Imports no other room."""
