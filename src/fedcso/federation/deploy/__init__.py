"""Starting a federation: keys, processes, and the folder that a site gets."""
