"""Find, download, verify, read and cache published data sets."""
