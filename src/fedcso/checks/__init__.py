"""Checks of one's own problems, methods and estimators: do they do what fedcso expects of them?"""
