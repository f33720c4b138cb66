"""`python -m fedcso` is the command line."""

import sys

from fedcso.cli import main

sys.exit(main())
