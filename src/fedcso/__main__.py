"""`python -m fedcso` is the command line."""

import sys

from fedcso.cli.main import main

sys.exit(main())
