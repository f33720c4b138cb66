"""What commands do once their options are known: imported then, because it imports torch, which help does not need."""
