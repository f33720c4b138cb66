"""Show what would leave a site if it joined a federation with this table: shapes and counts, never rows.

examples:
  fedcso check-site my.csv --label y
  fedcso check-site my.csv --label outcome --positive died,relapsed --drop ward
  fedcso check-site my.csv --label y --json        the exact message
"""

from fedcso.federation.sovereignty.policy import Policy
from fedcso.runs.parser import simple_parser


def main(arguments: list[str]) -> int:
    """Print a summary of what is sent, or the message itself."""
    parser = simple_parser("check-site", str(__doc__))
    parser.add_argument("data", help="the site's table: a .csv, .xlsx, .parquet or .npz file")
    parser.add_argument("--label", default="", help="the column that holds the labels")
    parser.add_argument("--positive", default="", help="the labels that count as positive, separated by commas")
    parser.add_argument("--drop", default="", help="columns to leave out, separated by commas")
    parser.add_argument("--columns", default="", help="the only columns to use, separated by commas")
    parser.add_argument("--json", action="store_true", help="print the exact message that is sent when the site joins")
    parser.add_argument(
        "--smallest_count", type=int, default=Policy.smallest_count, help="as in the site's policy, site.toml"
    )
    options = parser.parse_args(arguments)
    from fedcso.cli.work.check_site import check_site

    own = (options.data, options.label, options.positive, options.drop, options.columns)
    check_site(*own, as_json=options.json, smallest_count=options.smallest_count)
    return 0
