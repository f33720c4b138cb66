"""The former place of `fedcso.federation`, which app folders written by earlier versions import."""
