"""A log level between INFO and WARNING, for what users should see although nothing is wrong."""

import logging

NOTICE = 25
logging.addLevelName(NOTICE, "NOTICE")
