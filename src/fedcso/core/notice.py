"""A log level between info and warning: nothing is wrong, but the user should see why something takes a while."""

import logging

NOTICE = 25
logging.addLevelName(NOTICE, "NOTICE")
