"""The folder of a site in which its people put the public keys of the other sites, as NAME.pub."""

PEERS = "peers"
