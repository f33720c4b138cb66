"""Write a realistic table of payments at several banks, with rare fraud, for these commands to learn from.

python examples/fraud_auprc.py fraud.csv
fedcso run auprc --data fraud.csv --label fraud --site bank
fedcso run cross_entropy --data fraud.csv --label fraud --site bank
"""

import sys

import numpy as np
import pandas as pd

BANKS = {
    "Alder": (3000, 0.020),
    "Birch": (1500, 0.035),
    "Cedar": (800, 0.015),
    "Dogwood": (400, 0.030),
    "Elm": (150, 0.0),
}
"""The number of payments of each bank, and the share of fraud; the smallest bank has no fraud yet."""


def payments(seed: int = 0) -> pd.DataFrame:
    """Return a table with skewed, periodic and categorical columns and with missing values."""
    rng = np.random.default_rng(seed)
    parts = []
    for bank, (count, share) in BANKS.items():
        fraud = rng.random(count) < share
        part = pd.DataFrame(
            {
                "bank": bank,
                "amount": np.round(rng.lognormal(3.5 + 0.9 * fraud, 1.0), 2),
                "hour": np.where(fraud, rng.normal(2, 4, count), rng.normal(14, 4, count)).round().astype(int) % 24,
                "country": np.where(rng.random(count) < 0.15 + 0.35 * fraud, "abroad", "home"),
                "channel": rng.choice(["app", "card", "transfer"], count),
                "days_since_last": np.round(rng.exponential(np.where(fraud, 2.0, 6.0)), 1),
                "fraud": fraud.astype(int),
            }
        )
        part.loc[rng.random(count) < 0.05, "days_since_last"] = np.nan  # new customers have no last payment
        parts.append(part)
    return pd.concat(parts).sample(frac=1, random_state=seed)


def main() -> None:
    """Write the table."""
    path = sys.argv[1] if len(sys.argv) > 1 else "fraud.csv"
    table = payments()
    table.to_csv(path, index=False)
    print(f"{path}: {len(table)} payments at {len(BANKS)} banks, {table['fraud'].mean():.1%} fraud")


if __name__ == "__main__":
    main()
