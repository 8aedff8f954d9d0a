"""What calls cost: usage → price → bounds. A cancelled copy has no bill of its own, so its cost is a range, and says so."""
