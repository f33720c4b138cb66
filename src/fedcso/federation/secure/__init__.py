"""Secure aggregation: the coordinator learns the sum of the sites' updates and who took part, and no single update.

A round of training is five messages to each site (`answers` at a site, `collecting` at the coordinator):

    secure_keys       all sites are told the same terms (`terms`); each signs them with two fresh public keys
    secure_shares     each site checks the others' signatures, and sends them encrypted shares of its secrets
    secure_update     each site trains, writes its update in fixed-point numbers (`fixed_point`), and sends it masked
    secure_confirm    each site signs the list of the sites whose masked updates arrived
    secure_reveal     each site checks that enough sites signed the same list, and sends its shares of the secrets that
                      undo the masks in the sum over the list, never both secrets of one site

The cryptography is that of others: key agreement, encryption and Shamir's secret sharing are Flower's
(`flwr.common.secure_aggregation`), the signatures and the stream cipher those of `cryptography`. Flower's masks are not
used, because they come from 32 bits of a key, which can be guessed; nor is its quantisation, which clips silently.

Reference: Bonawitz, Ivanov, Kreuter, Marcedone, McMahan, Patel, Ramage, Segal, Seth, Practical Secure Aggregation for
Privacy-Preserving Machine Learning, CCS 2017, Figure 4.
"""
