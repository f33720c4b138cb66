"""What a site decides itself: its policy, the code it runs, the noise in its updates, and a record of what it sends.

The coordinator has no part in any of this. A site reads its policy before every message, checks the request against
it, protects its update, and writes a line to its record before an answer leaves. Modules that are read before the
request is known to be allowed import nothing but the standard library.
"""
