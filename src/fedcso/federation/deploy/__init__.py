"""Set up and start a federation: the app folder, certificates and keys, and the processes of Flower."""
