"""Getting published archives: where they are looked for, downloaded to and unpacked."""
